package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sort"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// extendedIn says how the extenders of a case answer: by path, one response after the other; the last one is repeated.
type extendedIn struct {
	Address   string                  `json:"address"`
	Responses map[string][]responseIn `json:"responses"`
}

type responseIn struct {
	Status  int    `json:"status"`
	Body    string `json:"body"`
	DelayMs int    `json:"delayMs"`
	Close   bool   `json:"close"`
}

type exchangeOut struct {
	Path    string          `json:"path"`
	Request json.RawMessage `json:"request"`
}

// extendedOut is what the scheduler's own SchedulePod says of one pod when it has extenders.
type extendedOut struct {
	Pod                  string         `json:"pod"`
	Host                 *string        `json:"host"`
	Evaluated            int            `json:"evaluated"`
	Feasible             int            `json:"feasible"`
	Message              *string        `json:"message"`
	Rejected             bool           `json:"rejected"`
	UnschedulablePlugins []string       `json:"unschedulablePlugins,omitempty"`
	Nominated            *string        `json:"nominated"`
	PostFilter           string         `json:"postFilter,omitempty"`
	Bound                *bool          `json:"bound"`
	BindError            string         `json:"bindError,omitempty"`
	Exchanges            []*exchangeOut `json:"exchanges"`
}

type extenderServer struct {
	mu        sync.Mutex
	in        *extendedIn
	asked     map[string]int
	exchanges []*exchangeOut
}

func (s *extenderServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.exchanges = append(s.exchanges, &exchangeOut{Path: r.URL.Path, Request: body})
	responses := s.in.Responses[r.URL.Path]
	number := min(s.asked[r.URL.Path], len(responses)-1)
	s.asked[r.URL.Path]++
	s.mu.Unlock()
	if number < 0 {
		http.NotFound(w, r)
		return
	}
	response := responses[number]
	time.Sleep(time.Duration(response.DelayMs) * time.Millisecond)
	if response.Close {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			conn.Close()
		}
		return
	}
	if response.Status != 0 {
		w.WriteHeader(response.Status)
	}
	io.WriteString(w, response.Body)
}

func (s *extenderServer) take() []*exchangeOut {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.exchanges
	s.exchanges = []*exchangeOut{}
	return taken
}

// runExtended schedules the pods of a case one after the other with a whole scheduler that asks HTTP extenders.
func runExtended(c *testCase) ([]*extendedOut, error) {
	restore, err := setFeatureGates(c.FeatureGates)
	if err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	defer restore()
	cfg, err := loadConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	content, toSchedule, err := readContent(c)
	if err != nil {
		return nil, err
	}
	server := &extenderServer{in: c.Extended, asked: map[string]int{}, exchanges: []*exchangeOut{}}
	listener, err := net.Listen("tcp", c.Extended.Address)
	if err != nil {
		return nil, err
	}
	httpServer := &http.Server{Handler: server}
	go httpServer.Serve(listener)
	defer httpServer.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fake.NewSimpleClientset()
	informers := scheduler.NewInformerFactory(client, 0)
	sched, err := scheduler.New(ctx, client, informers, nil, func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithProfiles(cfg.Profiles...), scheduler.WithPercentageOfNodesToScore(cfg.PercentageOfNodesToScore),
		scheduler.WithComponentConfigVersion(cfg.TypeMeta.APIVersion), scheduler.WithParallelism(1),
		scheduler.WithExtenders(cfg.Extenders...))
	if err != nil {
		return nil, err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return nil, err
	}
	time.Sleep(time.Millisecond)
	logger := klog.Background()
	pods := informers.Core().V1().Pods().Informer().GetStore()
	for _, node := range content.nodes {
		sched.Cache.AddNode(logger, node)
	}
	pending := map[*v1.Pod]bool{}
	for _, pod := range toSchedule {
		pending[pod] = true
	}
	for _, pod := range content.pods {
		if err := pods.Add(pod); err != nil {
			return nil, err
		}
		if pod.Spec.NodeName != "" && !pending[pod] {
			if err := sched.Cache.AddPod(logger, pod); err != nil {
				return nil, err
			}
		} else if pod.Status.NominatedNodeName != "" {
			sched.SchedulingQueue.Add(ctx, pod)
		}
	}
	answers := []*extendedOut{}
	for _, pod := range toSchedule {
		answer, err := extendedCycle(ctx, sched, server, pod)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

func extendedCycle(ctx context.Context, sched *scheduler.Scheduler, server *extenderServer, pod *v1.Pod) (*extendedOut, error) {
	logger := klog.Background()
	fw, ok := sched.Profiles[pod.Spec.SchedulerName]
	if !ok {
		return nil, fmt.Errorf("no profile for scheduler name %q", pod.Spec.SchedulerName)
	}
	if err := sched.Cache.UpdateSnapshot(logger, fw.SnapshotSharedLister().(*internalcache.Snapshot)); err != nil {
		return nil, err
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, err
	}
	answer := &extendedOut{Pod: podName(pod)}
	defer func() { answer.Exchanges = server.take() }()
	state := framework.NewCycleState()
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	result, err := sched.SchedulePod(ctx, fw, state, &framework.QueuedPodInfo{PodInfo: info})
	if err != nil {
		var fit *framework.FitError
		if errors.As(err, &fit) {
			answer.Rejected = true
			found, status := fw.RunPostFilterPlugins(ctx, state, pod, fit.Diagnosis.NodeToStatus)
			fit.Diagnosis.PostFilterMsg = status.Message()
			answer.PostFilter = status.Code().String()
			if found != nil && found.NominatingInfo != nil {
				answer.Nominated = &found.NominatedNodeName
			}
			for name := range fit.Diagnosis.UnschedulablePlugins {
				answer.UnschedulablePlugins = append(answer.UnschedulablePlugins, name)
			}
			sort.Strings(answer.UnschedulablePlugins)
		}
		text := err.Error()
		answer.Message = &text
		return answer, nil
	}
	host := result.SuggestedHost
	answer.Host, answer.Evaluated, answer.Feasible = &host, result.EvaluatedNodes, result.FeasibleNodes
	bound := false
	for _, extender := range sched.Extenders {
		// The scheduler's own loop (extendersBinding) is not exported.
		if !extender.IsBinder() || !extender.IsInterested(pod) {
			continue
		}
		err := extender.Bind(&v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     v1.ObjectReference{Kind: "Node", Name: host},
		})
		if err != nil && extender.IsIgnorable() {
			continue
		}
		bound = true
		if status := fwk.AsStatus(err); !status.IsSuccess() {
			answer.BindError = status.Message()
		}
		break
	}
	answer.Bound = &bound
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = host
	if err := sched.Cache.AssumePod(logger, assumed); err != nil {
		return nil, err
	}
	sched.SchedulingQueue.DeleteNominatedPodIfExists(assumed)
	return answer, nil
}
