// Command informers watches pods and nodes with client-go's shared informers, and prints their notifications as lines of JSON.
//
// It ends when its standard input does, after a last line with the contents of the informers' caches.
package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"sort"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

type line struct {
	Resource string   `json:"resource,omitempty"`
	Event    string   `json:"event"`
	Name     string   `json:"name,omitempty"`
	Version  string   `json:"version,omitempty"`
	Pods     []string `json:"pods,omitempty"`
	Nodes    []string `json:"nodes,omitempty"`
}

var (
	guard  sync.Mutex
	output = json.NewEncoder(os.Stdout)
)

func tell(l line) {
	guard.Lock()
	defer guard.Unlock()
	if err := output.Encode(l); err != nil {
		os.Exit(1)
	}
}

func check(err error) {
	if err != nil {
		tell(line{Event: "failed: " + err.Error()})
		os.Exit(1)
	}
}

func follow(resource string, informer cache.SharedIndexInformer) cache.InformerSynced {
	report := func(event string, object interface{}) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		found, err := meta.Accessor(object)
		check(err)
		tell(line{Resource: resource, Event: event, Name: found.GetName(), Version: found.GetResourceVersion()})
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object interface{}) { report("added", object) },
		UpdateFunc: func(_, object interface{}) { report("updated", object) },
		DeleteFunc: func(object interface{}) { report("deleted", object) },
	})
	check(err)
	return registration.HasSynced
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	client, err := kubernetes.NewForConfig(config)
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	podsTold, nodesTold := follow("pods", pods.Informer()), follow("nodes", nodes.Informer())
	factory.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), podsTold, nodesTold)
	tell(line{Event: "synced"})

	_, err = io.Copy(io.Discard, os.Stdin)
	check(err)
	last := line{Event: "ended"}
	foundPods, err := pods.Lister().List(labels.Everything())
	check(err)
	for _, each := range foundPods {
		last.Pods = append(last.Pods, each.Namespace+"/"+each.Name)
	}
	foundNodes, err := nodes.Lister().List(labels.Everything())
	check(err)
	for _, each := range foundNodes {
		last.Nodes = append(last.Nodes, each.Name)
	}
	sort.Strings(last.Pods)
	sort.Strings(last.Nodes)
	tell(last)
}
