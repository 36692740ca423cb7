// Command generator answers questions about quantities, requests, defaults, selectors and tolerations with Kubernetes' own
// code. It reads one question a line (see ../make_cases.py) and writes one answer a line; with the argument "fields" it
// writes the JSON fields of every API type that Bayplan has a struct for.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

type question struct {
	Op                string                `json:"op"`
	Text              string                `json:"text"`
	Other             string                `json:"other"`
	Object            json.RawMessage       `json:"object"`
	Pod               *v1.Pod               `json:"pod"`
	Node              *v1.Node              `json:"node"`
	Selector          *metav1.LabelSelector `json:"selector"`
	Labels            map[string]string     `json:"labels"`
	Toleration        *v1.Toleration        `json:"toleration"`
	Taint             *v1.Taint             `json:"taint"`
	PodLevelResources bool                  `json:"podLevelResources"`
}

type answer map[string]any

func main() {
	klog.SetOutput(os.Stderr)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	enc := json.NewEncoder(out)
	if len(os.Args) > 1 && os.Args[1] == "fields" {
		writeFields(enc)
		return
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	for in.Scan() {
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			panic(err)
		}
		if err := enc.Encode(map[string]func(question) answer{
			"quantity": askQuantity, "requests": askRequests, "default": askDefault, "nodeAffinity": askNodeAffinity,
			"labelSelector": askLabelSelector, "toleration": askToleration,
		}[q.Op](q)); err != nil {
			panic(err)
		}
	}
}

func describe(q resource.Quantity) answer {
	c := q.DeepCopy()
	return answer{"text": c.String(), "value": q.Value(), "milli": q.MilliValue(), "format": q.Format}
}

func askQuantity(q question) answer {
	x, err := resource.ParseQuantity(q.Text)
	if err != nil {
		return answer{"refused": true}
	}
	a := describe(x)
	neg := x.DeepCopy()
	neg.Neg()
	a["negative"] = neg.String()
	a["float"] = strconv.FormatFloat(x.AsApproximateFloat64(), 'g', -1, 64)
	if y, err := resource.ParseQuantity(q.Other); err == nil {
		sum, difference, left := x.DeepCopy(), x.DeepCopy(), x.DeepCopy()
		sum.Add(y.DeepCopy())
		difference.Sub(y.DeepCopy())
		a["sum"], a["difference"], a["compare"] = describe(sum), describe(difference), left.Cmp(y.DeepCopy())
	}
	return a
}

func amounts(list v1.ResourceList) map[string]int64 {
	out := map[string]int64{}
	for name, q := range list {
		if name == v1.ResourceCPU {
			out[string(name)] = q.MilliValue()
		} else {
			out[string(name)] = q.Value()
		}
	}
	return out
}

func counted(r *framework.Resource) map[string]int64 {
	out := map[string]int64{"cpu": r.MilliCPU, "memory": r.Memory, "ephemeral-storage": r.EphemeralStorage}
	for name, amount := range r.ScalarResources {
		out[string(name)] = amount
	}
	return out
}

// askRequests asks with a fresh copy each time: PodRequests changes pod-level quantities of its argument in place.
func askRequests(q question) answer {
	setGates(q.PodLevelResources)
	var fit framework.Resource
	fit.SetMaxResource(resourcehelper.PodRequests(q.Pod.DeepCopy(), resourcehelper.PodResourcesOptions{SkipPodLevelResources: !q.PodLevelResources}))
	missing := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(schedutil.DefaultMilliCPURequest, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(schedutil.DefaultMemoryRequest, resource.DecimalSI),
	}
	score := resourcehelper.PodRequests(q.Pod.DeepCopy(), resourcehelper.PodResourcesOptions{SkipPodLevelResources: true, NonMissingContainerRequests: missing})
	balance := resourcehelper.PodRequests(q.Pod.DeepCopy(), resourcehelper.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: q.PodLevelResources, SkipPodLevelResources: !q.PodLevelResources,
	})
	info, err := framework.NewPodInfo(q.Pod.DeepCopy())
	if err != nil {
		panic(err)
	}
	accounted := info.CalculateResource()
	ports := [][]any{}
	for _, p := range schedutil.GetHostPorts(q.Pod) {
		ports = append(ports, []any{p.HostIP, p.Protocol, p.HostPort})
	}
	return answer{
		"fit": counted(&fit), "fitScore": amounts(score), "balance": amounts(balance),
		"accounted": counted(accounted.Resource.(*framework.Resource)), "nonZero": []int64{accounted.Non0CPU, accounted.Non0Mem},
		"limits":    amounts(resourcehelper.AggregateContainerLimits(q.Pod.DeepCopy(), resourcehelper.PodResourcesOptions{})),
		"hostPorts": ports, "node": counted(framework.NewResource(q.Pod.Spec.Overhead)),
	}
}

func askDefault(q question) answer {
	setGates(true)
	obj, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(q.Object, nil, nil)
	if err != nil {
		return answer{"error": err.Error()}
	}
	legacyscheme.Scheme.Default(obj)
	return answer{"object": obj}
}

func askNodeAffinity(q question) answer {
	match, err := nodeaffinity.GetRequiredNodeAffinity(q.Pod).Match(q.Node)
	a := answer{"match": match}
	if err != nil {
		a["error"] = err.Error()
	}
	preferred, err := nodeaffinity.NewPreferredSchedulingTerms(q.Pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		a["preferredError"] = err.Error()
	} else {
		a["score"] = preferred.Score(q.Node)
	}
	return a
}

func askLabelSelector(q question) answer {
	s, err := metav1.LabelSelectorAsSelector(q.Selector)
	if err != nil {
		return answer{"error": err.Error()}
	}
	return answer{"match": s.Matches(labels.Set(q.Labels)), "everything": s.Empty()}
}

func askToleration(q question) answer {
	return answer{
		"tolerates":           q.Toleration.ToleratesTaint(klog.Background(), q.Taint, false),
		"toleratesComparison": q.Toleration.ToleratesTaint(klog.Background(), q.Taint, true),
	}
}

func setGates(podLevelResources bool) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		"PodLevelResources": podLevelResources, "InPlacePodLevelResourcesVerticalScaling": podLevelResources,
	}); err != nil {
		panic(err)
	}
}

// --- fields ---

var seen = map[reflect.Type]bool{}

func writeFields(enc *json.Encoder) {
	for _, object := range []any{
		v1.Pod{}, v1.Node{}, v1.Namespace{}, v1.Service{}, v1.ReplicationController{}, v1.PodTemplate{}, v1.PersistentVolume{},
		v1.PersistentVolumeClaim{}, appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{}, appsv1.DaemonSet{}, batchv1.Job{},
		batchv1.CronJob{}, policyv1.PodDisruptionBudget{}, schedulingv1.PriorityClass{}, schedulingv1alpha2.PodGroup{},
		storagev1.StorageClass{}, storagev1.CSINode{}, storagev1.CSIDriver{}, storagev1.CSIStorageCapacity{}, storagev1.VolumeAttachment{},
		resourcev1.ResourceClaim{}, resourcev1.ResourceClaimTemplate{}, resourcev1.ResourceSlice{}, resourcev1.DeviceClass{},
		resourcev1beta2.DeviceTaintRule{},
	} {
		walk(enc, reflect.TypeOf(object))
	}
}

// walk writes the fields of a type and of all types below it: JSON name to Go type.
func walk(enc *json.Encoder, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || t == reflect.TypeOf(metav1.Time{}) || t == reflect.TypeOf(resource.Quantity{}) {
		return
	}
	seen[t] = true
	fields := map[string]string{}
	collect(t, fields)
	if err := enc.Encode(map[string]any{"type": t.String(), "fields": fields}); err != nil {
		panic(err)
	}
	for i := range t.NumField() {
		walk(enc, t.Field(i).Type)
	}
}

func collect(t reflect.Type, fields map[string]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			collect(f.Type, fields)
		} else if name != "" && name != "-" {
			fields[name] = f.Type.String()
		}
	}
}
