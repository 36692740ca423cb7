// Command queue replays traces of operations on the real scheduling queue of kube-scheduler 1.36 with a clock that stands still
// unless told otherwise, and reports after every operation what it returned and the whole state.
//
// Input and output are JSON lines; both are described in conformance/QUEUE_CONFIG_HINTS.md.
// Every trace is replayed several times; where the answers differ (they depend on Go's map order), or where a pop had to choose
// between equals, the answer carries "unstable": true.
package main

import (
	"bufio"
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"sort"
	"time"
	"unsafe"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/events"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/schedulinggates"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	testingclock "k8s.io/utils/clock/testing"
)

//go:linkname flushBackoff k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushBackoffQCompleted
func flushBackoff(*queue.PriorityQueue, klog.Logger)

//go:linkname flushUnschedulable k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushUnschedulablePodsLeftover
func flushUnschedulable(*queue.PriorityQueue, klog.Logger)

const (
	defaultStart = int64(1_700_000_000_000_000_000)
	runs         = 10
)

type eventSpec struct {
	Resource string   `json:"resource"`
	Actions  []string `json:"actions"`
	Label    string   `json:"label"`
}

type hintSpec struct {
	Event  eventSpec         `json:"event"`
	Answer string            `json:"answer"`
	ByPod  map[string]string `json:"byPod"`
}

type options struct {
	StartUnixNs          *int64   `json:"startUnixNs"`
	InitialBackoffNs     *int64   `json:"initialBackoffNs"`
	MaxBackoffNs         *int64   `json:"maxBackoffNs"`
	MaxInUnschedulableNs *int64   `json:"maxInUnschedulableNs"`
	PopFromBackoffQ      *bool    `json:"popFromBackoffQ"`
	Profiles             []string `json:"profiles"`
	DefaultPlugins       bool     `json:"defaultPlugins"`
}

type opSpec struct {
	Op            string     `json:"op"`
	Pod           string     `json:"pod"`
	Pods          []string   `json:"pods"`
	Old           string     `json:"old"`
	New           string     `json:"new"`
	Plugin        string     `json:"plugin"`
	Code          string     `json:"code"`
	Unschedulable []string   `json:"unschedulable"`
	Pending       []string   `json:"pending"`
	Raw           bool       `json:"raw"`
	Via           string     `json:"via"`
	Event         *eventSpec `json:"event"`
	PreCheck      []string   `json:"preCheck"`
	MaxPriority   *int32     `json:"maxPriority"`
	Ns            int64      `json:"ns"`
	Node          string     `json:"node"`
	Mode          string     `json:"mode"`
	Kind          string     `json:"kind"`
	Type          string     `json:"type"`
	Cycle         *int64     `json:"cycle"`
	Pick          int        `json:"pick"`
}

type input struct {
	ID         string                     `json:"id"`
	Options    options                    `json:"options"`
	PreEnqueue []string                   `json:"preEnqueue"`
	Hints      map[string][]hintSpec      `json:"hints"`
	Pods       map[string]json.RawMessage `json:"pods"`
	Objects    map[string]json.RawMessage `json:"objects"`
	Cluster    []json.RawMessage          `json:"cluster"`
	Ops        []opSpec                   `json:"ops"`
}

type info struct {
	Pod           string   `json:"pod"`
	Version       string   `json:"version"`
	Timestamp     int64    `json:"timestamp"`
	Attempts      int      `json:"attempts"`
	Unschedulable int      `json:"unschedulableCount"`
	Errors        int      `json:"errorCount"`
	Initial       *int64   `json:"initialAttempt"`
	Plugins       []string `json:"unschedulablePlugins"`
	Pending       []string `json:"pendingPlugins"`
	Gate          string   `json:"gatingPlugin"`
	Flushed       bool     `json:"flushed"`
	Expiry        *int64   `json:"backoffExpiry,omitempty"`
}

type state struct {
	Now           int64               `json:"now"`
	Cycle         int64               `json:"cycle"`
	Active        []info              `json:"active"`
	Backoff       []info              `json:"backoff"`
	ErrorBackoff  []info              `json:"errorBackoff"`
	Unschedulable []info              `json:"unschedulable"`
	InFlight      []string            `json:"inFlight"`
	Nominated     map[string][]string `json:"nominated"`
}

type step struct {
	Result map[string]any `json:"result"`
	State  state          `json:"state"`
}

type output struct {
	ID       string  `json:"id"`
	Error    *string `json:"error"`
	Steps    []step  `json:"steps"`
	Unstable bool    `json:"unstable,omitempty"`
}

var actionNames = map[string]fwk.ActionType{
	"Add": fwk.Add, "Delete": fwk.Delete, "Update": fwk.Update, "All": fwk.All,
	"UpdateNodeAllocatable": fwk.UpdateNodeAllocatable, "UpdateNodeLabel": fwk.UpdateNodeLabel, "UpdateNodeTaint": fwk.UpdateNodeTaint,
	"UpdateNodeCondition": fwk.UpdateNodeCondition, "UpdateNodeAnnotation": fwk.UpdateNodeAnnotation,
	"UpdateNodeDeclaredFeature": fwk.UpdateNodeDeclaredFeature, "UpdatePodLabel": fwk.UpdatePodLabel,
	"UpdatePodScaleDown": fwk.UpdatePodScaleDown, "UpdatePodToleration": fwk.UpdatePodToleration,
	"UpdatePodSchedulingGatesEliminated": fwk.UpdatePodSchedulingGatesEliminated,
	"UpdatePodGeneratedResourceClaim":    fwk.UpdatePodGeneratedResourceClaim,
}

func toEvent(e eventSpec) fwk.ClusterEvent {
	ev := fwk.ClusterEvent{Resource: fwk.EventResource(e.Resource), CustomLabel: e.Label}
	for _, a := range e.Actions {
		bits, ok := actionNames[a]
		if !ok {
			panic("unknown action " + a)
		}
		ev.ActionType |= bits
	}
	return ev
}

// gatePlugin is a PreEnqueue plugin that rejects exactly the pods it is told to.
type gatePlugin struct {
	name string
	deny map[string]*fwk.Code
}

func (g *gatePlugin) Name() string { return g.name }
func (g *gatePlugin) PreEnqueue(_ context.Context, p *v1.Pod) *fwk.Status {
	if code := g.deny[p.Name]; code != nil {
		return fwk.NewStatus(*code, "held back")
	}
	return nil
}

// knownPods is the pod lister of the trace: what the informer cache would hold.
type knownPods struct {
	corelisters.PodNamespaceLister
	ns   string
	pods map[string]*v1.Pod
}

func (k knownPods) List(labels.Selector) ([]*v1.Pod, error) { return nil, nil }
func (k knownPods) Pods(ns string) corelisters.PodNamespaceLister {
	return knownPods{ns: ns, pods: k.pods}
}
func (k knownPods) Get(name string) (*v1.Pod, error) {
	if p := k.pods[k.ns+"/"+name]; p != nil {
		return p, nil
	}
	return nil, apierrors.NewNotFound(v1.Resource("pods"), name)
}

type replay struct {
	in      *input
	pods    map[string]*v1.Pod
	objects map[string]runtime.Object
	known   map[string]*v1.Pod
	gates   map[string]*gatePlugin
	popped  map[string]*framework.QueuedPodInfo
	nodes   sets.Set[string]
	clock   *testingclock.FakeClock
	q       *queue.PriorityQueue
	ctx     context.Context
	log     klog.Logger
	pop     bool
	closed  bool
	tie     bool
}

func private(v reflect.Value, name string) reflect.Value {
	f := v.FieldByName(name)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

func (r *replay) inFlight() []string {
	active := private(reflect.ValueOf(r.q).Elem(), "activeQ").Elem().Elem()
	out := []string{}
	for e := private(active, "inFlightEvents").Interface().(*list.List).Front(); e != nil; e = e.Next() {
		if p, ok := e.Value.(*v1.Pod); ok {
			out = append(out, "pod "+name(p))
			continue
		}
		ev := private(reflect.ValueOf(e.Value).Elem(), "event").Interface().(fwk.ClusterEvent)
		out = append(out, "event "+eventName(ev))
	}
	return out
}

func eventName(ev fwk.ClusterEvent) string {
	if ev.CustomLabel != "" || ev.ActionType.String() != "" {
		return ev.Label()
	}
	var names []string
	for n, bits := range actionNames {
		if bits&(bits-1) == 0 && ev.ActionType&bits != 0 {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	return fmt.Sprintf("%s%v", ev.Resource, names)
}

func name(p *v1.Pod) string { return p.Namespace + "/" + p.Name }

func sorted(s sets.Set[string]) []string {
	out := sets.List(s)
	if out == nil {
		return []string{}
	}
	return out
}

func describe(p *framework.QueuedPodInfo) info {
	i := info{Pod: name(p.Pod), Version: p.Pod.ResourceVersion, Timestamp: p.Timestamp.UnixNano(), Attempts: p.Attempts,
		Unschedulable: p.UnschedulableCount, Errors: p.ConsecutiveErrorsCount, Plugins: sorted(p.UnschedulablePlugins),
		Pending: sorted(p.PendingPlugins), Gate: p.GatingPlugin, Flushed: p.WasFlushedFromUnschedulable}
	if p.InitialAttemptTimestamp != nil {
		ns := p.InitialAttemptTimestamp.UnixNano()
		i.Initial = &ns
	}
	return i
}

func (r *replay) get(pods []*v1.Pod) []*framework.QueuedPodInfo {
	var out []*framework.QueuedPodInfo
	for _, p := range pods {
		if i, ok := r.q.GetPod(p.Name, p.Namespace); ok {
			out = append(out, i)
		} else {
			panic("listed pod not found: " + name(p))
		}
	}
	sort.Slice(out, func(a, b int) bool { return name(out[a].Pod) < name(out[b].Pod) })
	return out
}

func errorOnly(p *framework.QueuedPodInfo) bool {
	return p.UnschedulablePlugins.Len() == 0 && p.PendingPlugins.Len() == 0
}

func (r *replay) dump() state {
	less := (&queuesort.PrioritySort{}).Less
	s := state{Now: r.clock.Now().UnixNano(), Cycle: r.q.SchedulingCycle(), Active: []info{}, Backoff: []info{}, ErrorBackoff: []info{},
		Unschedulable: []info{}, InFlight: r.inFlight(), Nominated: map[string][]string{}}
	active := r.get(r.q.PodsInActiveQ())
	sort.SliceStable(active, func(a, b int) bool { return less(active[a], active[b]) })
	for _, p := range active {
		s.Active = append(s.Active, describe(p))
	}
	waiting := r.get(r.q.PodsInBackoffQ())
	sort.SliceStable(waiting, func(a, b int) bool {
		x, y := waiting[a], waiting[b]
		// Two lists: a pod of the other one must not stand between two pods that have an order.
		if errorOnly(x) != errorOnly(y) {
			return errorOnly(y)
		}
		if !x.BackoffExpiration.Equal(y.BackoffExpiration) {
			return x.BackoffExpiration.Before(y.BackoffExpiration)
		}
		return r.pop && !errorOnly(x) && less(x, y)
	})
	for _, p := range waiting {
		i := describe(p)
		ns := p.BackoffExpiration.UnixNano()
		i.Expiry = &ns
		if errorOnly(p) {
			s.ErrorBackoff = append(s.ErrorBackoff, i)
		} else {
			s.Backoff = append(s.Backoff, i)
		}
	}
	for _, p := range r.get(r.q.UnschedulablePods()) {
		s.Unschedulable = append(s.Unschedulable, describe(p))
	}
	for _, n := range sets.List(r.nodes) {
		for _, pi := range r.q.NominatedPodsForNode(n) {
			s.Nominated[n] = append(s.Nominated[n], name(pi.GetPod()))
		}
	}
	return s
}

func hintFn(spec hintSpec) fwk.QueueingHintFn {
	return func(_ klog.Logger, p *v1.Pod, _, _ interface{}) (fwk.QueueingHint, error) {
		a := spec.Answer
		if byPod, ok := spec.ByPod[p.Name]; ok {
			a = byPod
		}
		switch a {
		case "Queue":
			return fwk.Queue, nil
		case "Skip":
			return fwk.QueueSkip, nil
		case "Error":
			return fwk.QueueSkip, fmt.Errorf("hint failed")
		}
		panic("unknown answer " + a)
	}
}

func decode(raw json.RawMessage) runtime.Object {
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		panic(err)
	}
	return obj
}

// defaultMaps asks a scheduler with the default configuration for the queueing hints and PreEnqueue plugins of its profile,
// combined the way the scheduler does it: one entry per registered event, "Queue" where a plugin gave no function, and node taint
// updates for plugins that registered node additions but no taint updates.
func (r *replay) defaultMaps() (queue.QueueingHintMap, map[string]fwk.PreEnqueuePlugin) {
	var objs []runtime.Object
	for _, raw := range r.in.Cluster {
		objs = append(objs, decode(raw))
	}
	client := fake.NewClientset(objs...)
	factory := informers.NewSharedInformerFactory(client, 0)
	sched, err := scheduler.New(r.ctx, client, factory, nil, profile.RecorderFactory(func(string) events.EventRecorderLogger { return events.NewFakeRecorder(8) }))
	if err != nil {
		panic(err)
	}
	factory.Start(r.ctx.Done())
	factory.WaitForCacheSync(r.ctx.Done())
	if len(objs) > 0 {
		if err := sched.WaitForHandlersSync(r.ctx); err != nil {
			panic(err)
		}
	}
	f := sched.Profiles[v1.DefaultSchedulerName]
	pre := map[string]fwk.PreEnqueuePlugin{}
	for _, p := range f.PreEnqueuePlugins() {
		pre[p.Name()] = p
	}
	always := func(klog.Logger, *v1.Pod, interface{}, interface{}) (fwk.QueueingHint, error) { return fwk.Queue, nil }
	hints := queue.QueueingHintMap{}
	register := func(plugin string, ev fwk.ClusterEvent, fn fwk.QueueingHintFn) {
		hints[ev] = append(hints[ev], &queue.QueueingHintFunction{PluginName: plugin, QueueingHintFn: fn})
	}
	for _, ext := range f.EnqueueExtensions() {
		list, err := ext.EventsToRegister(r.ctx)
		if err != nil {
			panic(err)
		}
		added, taints := false, false
		for _, e := range list {
			fn := e.QueueingHintFn
			if fn == nil {
				fn = always
			}
			if e.Event.Resource == fwk.Node {
				added = added || e.Event.ActionType&fwk.Add != 0
				taints = taints || e.Event.ActionType&fwk.UpdateNodeTaint != 0
			}
			register(ext.Name(), e.Event, fn)
		}
		if added && !taints {
			register(ext.Name(), fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeTaint}, always)
		}
	}
	return hints, pre
}

func newReplay(ctx context.Context, in *input) *replay {
	r := &replay{in: in, pods: map[string]*v1.Pod{}, objects: map[string]runtime.Object{}, known: map[string]*v1.Pod{},
		gates: map[string]*gatePlugin{}, popped: map[string]*framework.QueuedPodInfo{}, nodes: sets.New[string](), pop: true}
	r.log = logr.Discard()
	r.ctx = klog.NewContext(ctx, r.log)
	for key, raw := range in.Pods {
		p := &v1.Pod{}
		if err := json.Unmarshal(raw, p); err != nil {
			panic(err)
		}
		if p.Namespace == "" {
			p.Namespace = "default"
		}
		if p.Spec.SchedulerName == "" {
			p.Spec.SchedulerName = v1.DefaultSchedulerName
		}
		if p.UID == "" {
			p.UID = types.UID("uid-" + p.Name)
		}
		if p.ResourceVersion == "" {
			p.ResourceVersion = key
		}
		if p.Status.NominatedNodeName != "" {
			r.nodes.Insert(p.Status.NominatedNodeName)
		}
		r.pods[key] = p
	}
	for key, raw := range in.Objects {
		r.objects[key] = decode(raw)
	}
	for _, o := range in.Ops {
		if o.Node != "" {
			r.nodes.Insert(o.Node)
		}
	}
	opt := in.Options
	start := defaultStart
	if opt.StartUnixNs != nil {
		start = *opt.StartUnixNs
	}
	r.clock = testingclock.NewFakeClock(time.Unix(0, start).UTC())
	if opt.PopFromBackoffQ != nil {
		r.pop = *opt.PopFromBackoffQ
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{"SchedulerPopFromBackoffQ": r.pop}); err != nil {
		panic(err)
	}
	profiles := opt.Profiles
	if profiles == nil {
		profiles = []string{v1.DefaultSchedulerName}
	}
	hints := queue.QueueingHintMap{}
	pre := map[string]fwk.PreEnqueuePlugin{}
	if opt.DefaultPlugins {
		hints, pre = r.defaultMaps()
	}
	for plugin, specs := range in.Hints {
		for _, s := range specs {
			ev := toEvent(s.Event)
			hints[ev] = append(hints[ev], &queue.QueueingHintFunction{PluginName: plugin, QueueingHintFn: hintFn(s)})
		}
	}
	for _, n := range in.PreEnqueue {
		if n == schedulinggates.Name {
			pl, err := schedulinggates.New(r.ctx, nil, nil, plfeature.Features{EnableSchedulingQueueHint: true})
			if err != nil {
				panic(err)
			}
			pre[n] = pl.(fwk.PreEnqueuePlugin)
			list, _ := pl.(fwk.EnqueueExtensions).EventsToRegister(r.ctx)
			for _, e := range list {
				hints[e.Event] = append(hints[e.Event], &queue.QueueingHintFunction{PluginName: n, QueueingHintFn: e.QueueingHintFn})
			}
			continue
		}
		r.gates[n] = &gatePlugin{name: n, deny: map[string]*fwk.Code{}}
		pre[n] = r.gates[n]
	}
	hintMap := queue.QueueingHintMapPerProfile{}
	preMap := map[string]map[string]fwk.PreEnqueuePlugin{}
	for _, p := range profiles {
		hintMap[p], preMap[p] = hints, pre
	}
	opts := []queue.Option{queue.WithClock(r.clock), queue.WithQueueingHintMapPerProfile(hintMap), queue.WithPreEnqueuePluginMap(preMap),
		queue.WithPodLister(knownPods{pods: r.known}),
		queue.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(10000, time.Hour, r.ctx.Done()))}
	if opt.InitialBackoffNs != nil {
		opts = append(opts, queue.WithPodInitialBackoffDuration(time.Duration(*opt.InitialBackoffNs)))
	}
	if opt.MaxBackoffNs != nil {
		opts = append(opts, queue.WithPodMaxBackoffDuration(time.Duration(*opt.MaxBackoffNs)))
	}
	if opt.MaxInUnschedulableNs != nil {
		opts = append(opts, queue.WithPodMaxInUnschedulablePodsDuration(time.Duration(*opt.MaxInUnschedulableNs)))
	}
	r.q = queue.NewPriorityQueue((&queuesort.PrioritySort{}).Less, informers.NewSharedInformerFactory(fake.NewClientset(), 0), opts...)
	return r
}

func (r *replay) pod(key string) *v1.Pod {
	p := r.pods[key]
	if p == nil {
		panic("no pod " + key)
	}
	return p.DeepCopy()
}

func (r *replay) canPop() bool {
	busy := sets.New[types.UID]()
	for _, p := range r.q.InFlightPods() {
		busy.Insert(p.UID)
	}
	for _, p := range r.q.PodsInActiveQ() {
		if !busy.Has(p.UID) {
			return true
		}
	}
	if r.pop {
		for _, i := range r.get(r.q.PodsInBackoffQ()) {
			if !errorOnly(i) && !busy.Has(i.Pod.UID) {
				return true
			}
		}
	}
	return false
}

// tied tells whether two pods could equally well come out of the next pop.
func (r *replay) tied() bool {
	less := (&queuesort.PrioritySort{}).Less
	best := func(pods []*framework.QueuedPodInfo, before func(a, b *framework.QueuedPodInfo) bool) bool {
		sort.SliceStable(pods, func(a, b int) bool { return before(pods[a], pods[b]) })
		return len(pods) > 1 && !before(pods[0], pods[1])
	}
	if active := r.get(r.q.PodsInActiveQ()); len(active) > 0 {
		return best(active, func(a, b *framework.QueuedPodInfo) bool { return less(a, b) })
	}
	var waiting []*framework.QueuedPodInfo
	for _, p := range r.get(r.q.PodsInBackoffQ()) {
		if !errorOnly(p) {
			waiting = append(waiting, p)
		}
	}
	return r.pop && best(waiting, func(a, b *framework.QueuedPodInfo) bool {
		if !a.BackoffExpiration.Equal(b.BackoffExpiration) {
			return a.BackoffExpiration.Before(b.BackoffExpiration)
		}
		return less(a, b)
	})
}

func nominating(o opSpec) *fwk.NominatingInfo {
	switch o.Mode {
	case "override":
		return &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: o.Node}
	case "noop":
		return &fwk.NominatingInfo{NominatingMode: fwk.ModeNoop}
	}
	return nil
}

func (r *replay) remember(i *framework.QueuedPodInfo) map[string]any {
	if i == nil {
		return map[string]any{"pod": nil}
	}
	r.popped[name(i.Pod)] = i
	return map[string]any{"pod": describe(i)}
}

func (r *replay) fail(o opSpec) map[string]any {
	key := name(r.pod(o.Pod))
	i := r.popped[key]
	if o.Raw {
		if i == nil {
			if queued, ok := r.q.GetPod(r.pod(o.Pod).Name, r.pod(o.Pod).Namespace); ok {
				i = queued.DeepCopy()
			} else {
				pi, _ := framework.NewPodInfo(r.pod(o.Pod))
				i = &framework.QueuedPodInfo{PodInfo: pi, Timestamp: r.clock.Now(), UnschedulablePlugins: sets.New[string]()}
			}
		}
	} else if i == nil {
		panic("fail of a pod that was not popped: " + o.Pod)
	}
	delete(r.popped, key)
	i.ClearRejectorPlugins()
	i.UnschedulablePlugins = sets.New(o.Unschedulable...)
	i.PendingPlugins = sets.New(o.Pending...)
	cycle := r.q.SchedulingCycle()
	if o.Cycle != nil {
		cycle = *o.Cycle
	}
	out := map[string]any{"requeued": true, "error": nil}
	cached := r.known[key]
	switch {
	case o.Raw:
	case cached == nil:
		out["requeued"] = false
	case cached.Spec.NodeName != "":
		out["requeued"] = false
	case cached.UID != i.Pod.UID:
		r.q.Done(i.Pod.UID)
		return map[string]any{"requeued": false, "error": nil}
	default:
		i.PodInfo, _ = framework.NewPodInfo(cached.DeepCopy())
	}
	if out["requeued"].(bool) {
		if err := r.q.AddUnschedulableIfNotPresent(r.log, i, cycle); err != nil {
			out["error"] = err.Error()
		}
	} else {
		defer r.q.Done(i.Pod.UID)
	}
	r.q.AddNominatedPod(r.log, i.PodInfo, nominating(o))
	return out
}

func (r *replay) preCheck(o opSpec) queue.PreEnqueueCheck {
	switch {
	case o.MaxPriority != nil:
		return func(p *v1.Pod) bool { return corev1helpers.PodPriority(p) <= *o.MaxPriority }
	case o.PreCheck != nil:
		allowed := sets.New(o.PreCheck...)
		return func(p *v1.Pod) bool { return allowed.Has(p.Name) }
	}
	return nil
}

func (r *replay) object(key string) interface{} {
	if key == "" {
		return nil
	}
	if o := r.objects[key]; o != nil {
		return o
	}
	return r.pod(key)
}

func (r *replay) do(o opSpec) map[string]any {
	q := r.q
	switch o.Op {
	case "add":
		p := r.pod(o.Pod)
		r.known[name(p)] = p
		q.Add(r.ctx, p)
	case "update":
		p := r.pod(o.New)
		r.known[name(p)] = p
		if o.Old == "" {
			q.Update(r.ctx, nil, p)
		} else {
			q.Update(r.ctx, r.pod(o.Old), p)
		}
	case "delete":
		p := r.pod(o.Pod)
		delete(r.known, name(p))
		q.Delete(p)
	case "pop":
		if !r.closed && !r.canPop() {
			return map[string]any{"pod": nil, "wouldBlock": true}
		}
		r.tie = r.tie || r.tied()
		i, err := q.Pop(r.log)
		if err != nil {
			return map[string]any{"pod": nil, "error": err.Error()}
		}
		return r.remember(i)
	case "popSpecific":
		return r.remember(q.PopSpecificPod(r.log, r.pod(o.Pod)))
	case "fail":
		return r.fail(o)
	case "done":
		delete(r.popped, name(r.pod(o.Pod)))
		q.Done(r.pod(o.Pod).UID)
	case "move":
		q.MoveAllToActiveOrBackoffQueue(r.log, toEvent(*o.Event), r.object(o.Old), r.object(o.New), r.preCheck(o))
	case "assignedAdd":
		p := r.pod(o.Pod)
		r.known[name(p)] = p
		if o.Via == "queue" {
			q.AssignedPodAdded(r.log, p)
		} else {
			q.MoveAllToActiveOrBackoffQueue(r.log, framework.EventAssignedPodAdd, nil, p, nil)
		}
	case "assignedUpdate":
		old, p := r.pod(o.Old), r.pod(o.New)
		r.known[name(p)] = p
		labels := []string{}
		for _, ev := range framework.PodSchedulingPropertiesChange(p, old) {
			labels = append(labels, ev.Label())
			if o.Via == "queue" {
				q.AssignedPodUpdated(r.log, old, p, ev)
			} else {
				q.MoveAllToActiveOrBackoffQueue(r.log, ev, old, p, nil)
			}
		}
		return map[string]any{"events": labels}
	case "assignedDelete":
		p := r.pod(o.Pod)
		delete(r.known, name(p))
		q.MoveAllToActiveOrBackoffQueue(r.log, framework.EventAssignedPodDelete, p, nil, nil)
	case "nodeUpdate":
		old, cur := r.object(o.Old).(*v1.Node), r.object(o.New).(*v1.Node)
		labels := []string{}
		for _, ev := range framework.NodeSchedulingPropertiesChange(cur, old) {
			labels = append(labels, ev.Label())
			q.MoveAllToActiveOrBackoffQueue(r.log, ev, old, cur, r.preCheck(o))
		}
		return map[string]any{"events": labels}
	case "activate":
		pods := map[string]*v1.Pod{}
		for _, key := range o.Pods {
			pods[name(r.pod(key))] = r.pod(key)
		}
		q.Activate(r.log, pods)
	case "advance":
		r.clock.Step(time.Duration(o.Ns))
	case "flushBackoff":
		flushBackoff(q, r.log)
	case "flushUnschedulable":
		flushUnschedulable(q, r.log)
	case "nominate":
		pi, _ := framework.NewPodInfo(r.pod(o.Pod))
		q.AddNominatedPod(r.log, pi, nominating(o))
	case "unnominate":
		q.DeleteNominatedPodIfExists(r.pod(o.Pod))
	case "updateNominated":
		pi, _ := framework.NewPodInfo(r.pod(o.New))
		q.UpdateNominatedPod(r.log, r.pod(o.Old), pi)
	case "listerSet":
		p := r.pod(o.Pod)
		r.known[name(p)] = p
	case "listerRemove":
		delete(r.known, name(r.pod(o.Pod)))
	case "gate":
		code := fwk.UnschedulableAndUnresolvable
		switch o.Code {
		case "Error":
			code = fwk.Error
		case "Unschedulable":
			code = fwk.Unschedulable
		}
		deny := map[string]*fwk.Code{}
		for _, n := range o.Pods {
			deny[n] = &code
		}
		r.gates[o.Plugin].deny = deny
	case "close":
		q.Close()
		r.closed = true
	default:
		panic("unknown op " + o.Op)
	}
	return map[string]any{}
}

func answer(in *input) (out output) {
	out = output{ID: in.ID, Steps: []step{}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer func() {
		if e := recover(); e != nil {
			text := fmt.Sprint(e)
			out.Error = &text
		}
	}()
	r := newReplay(ctx, in)
	for _, o := range in.Ops {
		res := r.do(o)
		out.Steps = append(out.Steps, step{Result: res, State: r.dump()})
	}
	out.Unstable = r.tie
	return out
}

// resolve replaces the "failAny"/"doneAny" operations of generated traces by operations on a pod that is out at that moment
// (number "pick" of those by name), so that the stored trace names every pod. Operations without such a pod are left out.
func resolve(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if !bytes.Contains(line, []byte(`Any"`)) {
		return line
	}
	var whole map[string]json.RawMessage
	c := &input{}
	var raws []map[string]any
	for _, err := range []error{json.Unmarshal(line, &whole), json.Unmarshal(line, c), json.Unmarshal(whole["ops"], &raws)} {
		if err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := newReplay(ctx, c)
	var kept []map[string]any
	for i, o := range c.Ops {
		if o.Op == "failAny" || o.Op == "doneAny" {
			out := []string{}
			for n := range r.popped {
				out = append(out, n)
			}
			if len(out) == 0 {
				continue
			}
			sort.Strings(out)
			o.Pod = r.popped[out[o.Pick%len(out)]].Pod.Name
			o.Op = o.Op[:4]
			raws[i]["op"], raws[i]["pod"] = o.Op, o.Pod
			delete(raws[i], "pick")
		}
		r.do(o)
		kept = append(kept, raws[i])
	}
	whole["ops"], _ = json.Marshal(kept)
	text, err := json.Marshal(whole)
	if err != nil {
		panic(err)
	}
	return text
}

func main() {
	klog.SetLogger(logr.Discard())
	metrics.Register()
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 && len(os.Args) > 1 && os.Args[1] == "resolve" {
			w.Write(append(resolve(line), '\n'))
		} else if len(bytes.TrimSpace(line)) > 0 {
			c := &input{}
			if e := json.Unmarshal(line, c); e != nil {
				fmt.Fprintln(os.Stderr, "queue: bad line:", e)
				os.Exit(1)
			}
			first := answer(c)
			text, e := json.Marshal(first)
			if e != nil {
				panic(e)
			}
			n := runs
			if c.Options.DefaultPlugins {
				n = 4
			}
			for i := 1; i < n; i++ {
				again, _ := json.Marshal(answer(c))
				if !bytes.Equal(text, again) {
					first.Unstable = true
					text, _ = json.Marshal(first)
					break
				}
			}
			w.Write(text)
			w.WriteByte('\n')
		}
		if err == io.EOF {
			return
		}
	}
}
