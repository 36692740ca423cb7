package main

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// sampledOut is what the scheduler's own SchedulePod says of one pod.
type sampledOut struct {
	Pod       string  `json:"pod"`
	Host      *string `json:"host"`
	Evaluated int     `json:"evaluated"`
	Feasible  int     `json:"feasible"`
	Message   *string `json:"message"`
}

// runSampled schedules the pods of a case one after the other with a whole scheduler that looks at as many nodes as its configuration
// says, with one worker. Each pod is assumed where the scheduler suggests. Of other objects only namespaces are known.
func runSampled(c *testCase) ([]*sampledOut, error) {
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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fake.NewSimpleClientset()
	informers := scheduler.NewInformerFactory(client, 0)
	sched, err := scheduler.New(ctx, client, informers, nil, func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithProfiles(cfg.Profiles...), scheduler.WithPercentageOfNodesToScore(cfg.PercentageOfNodesToScore),
		scheduler.WithComponentConfigVersion(cfg.TypeMeta.APIVersion), scheduler.WithParallelism(1))
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
	for _, objs := range content.byType {
		for _, obj := range objs {
			if ns, ok := obj.(*v1.Namespace); ok {
				if err := informers.Core().V1().Namespaces().Informer().GetStore().Add(ns); err != nil {
					return nil, err
				}
			}
		}
	}
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
			// The queue knows what nominated pods ask for.
			sched.SchedulingQueue.Add(ctx, pod)
		}
	}
	answers := []*sampledOut{}
	for _, pod := range toSchedule {
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
		answer := &sampledOut{Pod: podName(pod)}
		answers = append(answers, answer)
		state := framework.NewCycleState()
		state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
		result, err := sched.SchedulePod(ctx, fw, state, &framework.QueuedPodInfo{PodInfo: info})
		if err != nil {
			text := err.Error()
			answer.Message = &text
			continue
		}
		host := result.SuggestedHost
		answer.Host, answer.Evaluated, answer.Feasible = &host, result.EvaluatedNodes, result.FeasibleNodes
		assumed := pod.DeepCopy()
		assumed.Spec.NodeName = host
		if err := sched.Cache.AssumePod(logger, assumed); err != nil {
			return nil, err
		}
		sched.SchedulingQueue.DeleteNominatedPodIfExists(assumed)
	}
	return answers, nil
}
