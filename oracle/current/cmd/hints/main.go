// Command hints asks the in-tree plugins of kube-scheduler 1.36 which cluster events they register for and what their queueing
// hint functions answer.
//
// Input and output are JSON lines; both are described in conformance/QUEUE_CONFIG_HINTS.md.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"sort"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internal "k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

type eventSpec struct {
	Resource string   `json:"resource"`
	Actions  []string `json:"actions"`
}

type input struct {
	ID           string            `json:"id"`
	List         bool              `json:"list"`
	Plugin       string            `json:"plugin"`
	Pod          json.RawMessage   `json:"pod"`
	Type         string            `json:"type"`
	Old          json.RawMessage   `json:"old"`
	New          json.RawMessage   `json:"new"`
	Event        *eventSpec        `json:"event"`
	Cluster      []json.RawMessage `json:"cluster"`
	Config       json.RawMessage   `json:"config"`
	FeatureGates map[string]bool   `json:"featureGates"`
}

type registration struct {
	Resource string   `json:"resource"`
	Actions  []string `json:"actions"`
	Label    string   `json:"label,omitempty"`
	Function bool     `json:"function"`
}

type hintAnswer struct {
	Registered registration `json:"registered"`
	Answer     string       `json:"answer"`
	Error      *string      `json:"error"`
}

type eventAnswer struct {
	Event       eventSpec    `json:"event"`
	MaxPriority *int32       `json:"maxPriority,omitempty"`
	Hints       []hintAnswer `json:"hints"`
	Answer      string       `json:"answer"`
}

type output struct {
	ID       string                    `json:"id"`
	Error    *string                   `json:"error"`
	Plugins  map[string][]registration `json:"plugins,omitempty"`
	Events   []eventAnswer             `json:"events,omitempty"`
	Unstable bool                      `json:"unstable,omitempty"`
}

var actions = []struct {
	name string
	bits fwk.ActionType
}{
	{"Add", fwk.Add}, {"Delete", fwk.Delete}, {"UpdateNodeAllocatable", fwk.UpdateNodeAllocatable}, {"UpdateNodeLabel", fwk.UpdateNodeLabel},
	{"UpdateNodeTaint", fwk.UpdateNodeTaint}, {"UpdateNodeCondition", fwk.UpdateNodeCondition}, {"UpdateNodeAnnotation", fwk.UpdateNodeAnnotation},
	{"UpdateNodeDeclaredFeature", fwk.UpdateNodeDeclaredFeature}, {"UpdatePodLabel", fwk.UpdatePodLabel}, {"UpdatePodScaleDown", fwk.UpdatePodScaleDown},
	{"UpdatePodToleration", fwk.UpdatePodToleration}, {"UpdatePodSchedulingGatesEliminated", fwk.UpdatePodSchedulingGatesEliminated},
	{"UpdatePodGeneratedResourceClaim", fwk.UpdatePodGeneratedResourceClaim},
}

func actionList(a fwk.ActionType) []string {
	out := []string{}
	if a == fwk.All {
		return []string{"All"}
	}
	if a&fwk.Update == fwk.Update {
		for _, n := range actionList(a &^ fwk.Update) {
			out = append(out, n)
		}
		return append(out, "Update")
	}
	for _, x := range actions {
		if a&x.bits != 0 {
			out = append(out, x.name)
		}
	}
	return out
}

func actionBits(names []string) (a fwk.ActionType) {
	for _, n := range names {
		switch n {
		case "All":
			a |= fwk.All
		case "Update":
			a |= fwk.Update
		}
		for _, x := range actions {
			if x.name == n {
				a |= x.bits
			}
		}
	}
	return a
}

var resources = map[string]fwk.EventResource{
	"PersistentVolume": fwk.PersistentVolume, "PersistentVolumeClaim": fwk.PersistentVolumeClaim, "CSINode": fwk.CSINode,
	"CSIDriver": fwk.CSIDriver, "VolumeAttachment": fwk.VolumeAttachment, "CSIStorageCapacity": fwk.CSIStorageCapacity,
	"StorageClass": fwk.StorageClass, "ResourceClaim": fwk.ResourceClaim, "ResourceSlice": fwk.ResourceSlice,
	"DeviceClass": fwk.DeviceClass, "PodGroup": fwk.PodGroup,
}

func decode(raw json.RawMessage) runtime.Object {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		panic(err)
	}
	if p, ok := obj.(*v1.Pod); ok {
		if p.Namespace == "" {
			p.Namespace = "default"
		}
		if p.UID == "" {
			p.UID = types.UID("uid-" + p.Name)
		}
		if p.Spec.SchedulerName == "" {
			p.Spec.SchedulerName = v1.DefaultSchedulerName
		}
	}
	return obj
}

// incoming is an event as the event handlers hand it to the queue.
type incoming struct {
	event       fwk.ClusterEvent
	old, new    interface{}
	maxPriority *int32
}

// derive does what the event handlers of the scheduler do with an object that was added, updated or deleted.
func derive(kind string, old, cur runtime.Object) []incoming {
	var out []incoming
	one := func(ev fwk.ClusterEvent, o, n interface{}) { out = append(out, incoming{event: ev, old: o, new: n}) }
	oldPod, _ := old.(*v1.Pod)
	newPod, _ := cur.(*v1.Pod)
	oldNode, _ := old.(*v1.Node)
	newNode, _ := cur.(*v1.Node)
	freed := func(p *v1.Pod) {
		prio := corev1helpers.PodPriority(p)
		out = append(out, incoming{event: framework.EventAssignedPodDelete, old: p, maxPriority: &prio})
	}
	switch {
	case oldPod == nil && newPod != nil:
		if newPod.Spec.NodeName != "" {
			one(framework.EventAssignedPodAdd, nil, newPod)
		} else if utilfeature.DefaultFeatureGate.Enabled("GangScheduling") {
			one(framework.EventUnscheduledPodAdd, nil, newPod)
		}
	case oldPod != nil && newPod != nil:
		if oldPod.Spec.NodeName == "" && newPod.Spec.NodeName != "" {
			one(framework.EventAssignedPodAdd, nil, newPod)
			break
		}
		for _, ev := range framework.PodSchedulingPropertiesChange(newPod, oldPod) {
			one(ev, oldPod, newPod)
		}
		if n := oldPod.Status.NominatedNodeName; oldPod.Spec.NodeName == "" && n != "" && n != newPod.Status.NominatedNodeName {
			freed(oldPod)
		}
	case oldPod != nil:
		if oldPod.Spec.NodeName != "" {
			one(framework.EventAssignedPodDelete, oldPod, nil)
		} else if oldPod.Status.NominatedNodeName != "" {
			freed(oldPod)
		}
	case oldNode != nil && newNode != nil:
		for _, ev := range framework.NodeSchedulingPropertiesChange(newNode, oldNode) {
			one(ev, oldNode, newNode)
		}
	case newNode != nil:
		one(fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, nil, newNode)
	case oldNode != nil:
		one(fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Delete}, oldNode, nil)
	default:
		ev := fwk.ClusterEvent{Resource: resources[kind], ActionType: fwk.Update}
		if ev.Resource == "" {
			panic("no event resource for kind " + kind)
		}
		if old == nil {
			ev.ActionType = fwk.Add
			one(ev, nil, cur)
		} else if cur == nil {
			ev.ActionType = fwk.Delete
			one(ev, old, nil)
		} else {
			one(ev, old, cur)
		}
	}
	return out
}

// built keeps one framework for every combination of cluster, configuration and feature gates: hint functions change nothing.
var built = map[string]framework.Framework{}

func frameworkFor(ctx context.Context, in *input) framework.Framework {
	key, err := json.Marshal([]any{in.Cluster, in.Config, in.FeatureGates})
	if err != nil {
		panic(err)
	}
	if built[string(key)] == nil {
		built[string(key)] = newFramework(ctx, in)
	}
	return built[string(key)]
}

func newFramework(ctx context.Context, in *input) framework.Framework {
	var objs []runtime.Object
	for _, raw := range in.Cluster {
		objs = append(objs, decode(raw))
	}
	client := fake.NewClientset(objs...)
	factory := informers.NewSharedInformerFactory(client, 0)
	var opts []scheduler.Option
	if len(in.Config) > 0 {
		obj, _, err := configscheme.Codecs.UniversalDecoder().Decode(in.Config, nil, nil)
		if err != nil {
			panic(err)
		}
		opts = append(opts, scheduler.WithProfiles(obj.(*internal.KubeSchedulerConfiguration).Profiles...))
	}
	sched, err := scheduler.New(ctx, client, factory, nil,
		profile.RecorderFactory(func(string) events.EventRecorderLogger { return events.NewFakeRecorder(8) }), opts...)
	if err != nil {
		panic(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		panic(err)
	}
	return sched.Profiles[v1.DefaultSchedulerName]
}

func register(e fwk.ClusterEventWithHint) registration {
	return registration{Resource: string(e.Event.Resource), Actions: actionList(e.Event.ActionType), Label: e.Event.CustomLabel, Function: e.QueueingHintFn != nil}
}

func ask(e fwk.ClusterEventWithHint, pod *v1.Pod, in incoming) (a hintAnswer) {
	a = hintAnswer{Registered: register(e), Answer: "Queue"}
	if e.QueueingHintFn == nil {
		return a
	}
	defer func() {
		if r := recover(); r != nil {
			text := fmt.Sprintf("panic: %v", r)
			a.Answer, a.Error = "Panic", &text
		}
	}()
	hint, err := e.QueueingHintFn(logr.Discard(), pod, in.old, in.new)
	if hint == fwk.QueueSkip {
		a.Answer = "Skip"
	}
	if err != nil {
		text := err.Error()
		a.Answer, a.Error = "Queue", &text
	}
	return a
}

func answer(in *input) (out output) {
	out = output{ID: in.ID}
	defer func() {
		if r := recover(); r != nil {
			text := fmt.Sprint(r)
			out.Error = &text
		}
	}()
	gates := utilfeature.DefaultMutableFeatureGate
	before := map[string]bool{}
	for f := range gates.GetAll() {
		if _, set := in.FeatureGates[string(f)]; set {
			before[string(f)] = gates.Enabled(f)
		}
	}
	if err := gates.SetFromMap(in.FeatureGates); err != nil {
		panic(err)
	}
	defer func() { _ = gates.SetFromMap(before) }()
	ctx := klog.NewContext(context.Background(), logr.Discard())
	f := frameworkFor(ctx, in)
	if in.List {
		out.Plugins = map[string][]registration{}
	}
	var mine []fwk.ClusterEventWithHint
	for _, ext := range f.EnqueueExtensions() {
		list, err := ext.EventsToRegister(ctx)
		if err != nil {
			panic(err)
		}
		if in.List {
			out.Plugins[ext.Name()] = []registration{}
			for _, e := range list {
				out.Plugins[ext.Name()] = append(out.Plugins[ext.Name()], register(e))
			}
		} else if ext.Name() == in.Plugin {
			mine = list
		}
	}
	if in.List {
		return out
	}
	if mine == nil {
		panic("no such plugin, or it registers nothing: " + in.Plugin)
	}
	pod := decode(in.Pod).(*v1.Pod)
	old, cur := decode(in.Old), decode(in.New)
	kind := ""
	for _, o := range []runtime.Object{old, cur} {
		if o != nil {
			kind = reflect.TypeOf(o).Elem().Name()
		}
	}
	var incomings []incoming
	if in.Event != nil {
		i := incoming{event: fwk.ClusterEvent{Resource: fwk.EventResource(in.Event.Resource), ActionType: actionBits(in.Event.Actions)}}
		if old != nil {
			i.old = old
		}
		if cur != nil {
			i.new = cur
		}
		incomings = []incoming{i}
	} else {
		incomings = derive(kind, old, cur)
	}
	for _, i := range incomings {
		a := eventAnswer{Event: eventSpec{Resource: string(i.event.Resource), Actions: actionList(i.event.ActionType)}, MaxPriority: i.maxPriority,
			Hints: []hintAnswer{}, Answer: "NotRegistered"}
		for _, e := range mine {
			if !framework.MatchClusterEvents(e.Event, i.event) {
				continue
			}
			h := ask(e, pod.DeepCopy(), i)
			a.Hints = append(a.Hints, h)
			if a.Answer != "Queue" {
				a.Answer = h.Answer
			}
		}
		sort.SliceStable(a.Hints, func(x, y int) bool { return a.Hints[x].Registered.Resource < a.Hints[y].Registered.Resource })
		out.Events = append(out.Events, a)
	}
	if out.Events == nil {
		out.Events = []eventAnswer{}
	}
	return out
}

func main() {
	klog.SetLogger(logr.Discard())
	metrics.Register()
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			c := &input{}
			if e := json.Unmarshal(line, c); e != nil {
				fmt.Fprintln(os.Stderr, "hints: bad line:", e)
				os.Exit(1)
			}
			first := answer(c)
			if !reflect.DeepEqual(first, answer(c)) {
				first.Unstable = true
			}
			text, e := json.Marshal(first)
			if e != nil {
				panic(e)
			}
			w.Write(text)
			w.WriteByte('\n')
		}
		if err == io.EOF {
			return
		}
	}
}
