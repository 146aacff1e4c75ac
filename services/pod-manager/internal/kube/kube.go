// Package kube is the rim to Kubernetes: it tells the pools what becomes of pods, and
// carries out what they decide. It decides nothing about pods itself.
//
// Beside that it keeps house, see [Cluster.Run]. Porch's function runner labels its
// pods and Services like this one: its pods are no part of any pool, but both are
// collected when nobody else does, as it would have done itself.
package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Config is what a cluster is made of.
type Config struct {
	Client kubernetes.Interface
	// Namespace is where function pods live.
	Namespace string
	// PodIP has pods reached by their own addresses. Otherwise each gets a Service.
	PodIP bool
	// ClusterDomain is the domain of the names of Services.
	ClusterDomain string
	// Builder makes pods and Services.
	Builder podspec.Builder
	// Templates has the template for pods that were decided about before there was one,
	// and for Services that have to be made again.
	Templates *Templates
	// ScanInterval is the time between two searches for what belongs to nobody.
	ScanInterval time.Duration
	// Trial is that of image volumes; nil if there is none.
	Trial *Trial
	// Clock translates between this machine's times and those in pods.
	Clock     *Clock
	Telemetry *telemetry.Telemetry
}

// Cluster is the function pods of a namespace. Use [New]; Run has to run while it is
// used.
type Cluster struct {
	config  Config
	log     *slog.Logger
	metrics *metrics
	pods    cache.SharedIndexInformer
	// services are watched even if pods need none: there may be some from before.
	services cache.SharedIndexInformer
	tasks    *tasks
	synced   chan struct{}
	outages  []*outage // of both views
	// telling keeps those who tell about pods from overtaking each other.
	telling sync.Mutex
	// going are the UIDs of pods that were deleted here: their Services go with them.
	going sync.Map
	// extensions are those that wait, by the pod's name.
	extensions sync.Map
}

// byID is the index of pods by their id, which is their Service's name.
const byID = "id"

// New returns a cluster. It asks for nothing yet.
func New(config Config) (*Cluster, error) {
	metrics, err := newMetrics(config.Telemetry.Meters)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		config: config, log: config.Telemetry.Log, metrics: metrics,
		tasks: newTasks(), synced: make(chan struct{}),
	}
	labelled := func(o *metav1.ListOptions) { o.LabelSelector = podspec.LabelID }
	core := config.Client.CoreV1()
	c.pods, err = newView(config.Client, &corev1.Pod{}, core.Pods(config.Namespace), labelled, c.outage("pods"))
	if err != nil {
		return nil, err
	}
	c.services, err = newView(config.Client, &corev1.Service{}, core.Services(config.Namespace), labelled, c.outage("services"))
	if err != nil {
		return nil, err
	}
	index := func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Labels[podspec.LabelID]}, nil }
	if err := c.pods.AddIndexers(cache.Indexers{byID: index}); err != nil {
		return nil, fmt.Errorf("set up the view of function pods: %w", err)
	}
	return c, nil
}

// outage returns what keeps track of a view.
func (c *Cluster) outage(what string) *outage {
	o := &outage{what: what, log: c.log, metrics: c.metrics}
	c.outages = append(c.outages, o)
	return o
}

// Synced closes when all pods that existed at the start have been told.
func (c *Cluster) Synced() <-chan struct{} { return c.synced }

// Run tells what becomes of pods and carries out actions, until ctx ends. Events about
// one pod come in order; tell may keep them waiting.
//
// It also looks after what no pool decides about: Services that lost their pod are
// deleted, those that pods lost are made again, and pods that Porch's function runner
// left behind go when their time has come.
func (c *Cluster) Run(ctx context.Context, tell func(pool.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	told, err := c.watch(tell)
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // they return no errors
	defer cancel()
	if err != nil {
		return err
	}
	run := func(do func()) { running.Go(func() error { do(); return nil }) }
	run(func() { look(ctx, c.pods) })
	run(func() { look(ctx, c.services) })
	run(func() { c.tasks.run(ctx, tell) })
	run(func() { c.keepHouse(ctx) })
	if cache.WaitFor(ctx, "", told...) {
		close(c.synced)
	}
	<-ctx.Done()
	return nil
}

// watch has events told from when the views run. It returns what is done once all that
// existed has been told.
func (c *Cluster) watch(tell func(pool.Event)) ([]cache.DoneChecker, error) {
	pods, err := c.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.tellPod(tell, object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { c.tellPod(tell, object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if pod := deleted[*corev1.Pod](object); pod != nil {
				c.tellGone(tell, pod)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch function pods: %w", err)
	}
	if c.config.PodIP {
		return []cache.DoneChecker{pods.HasSyncedChecker()}, nil
	}
	services, err := c.services.AddEventHandler(cache.ResourceEventHandlerFuncs{
		// A pod has its address while its Service is there.
		AddFunc: func(object any) { c.tellPodsOf(tell, object.(*corev1.Service)) },
		DeleteFunc: func(object any) {
			if service := deleted[*corev1.Service](object); service != nil {
				c.tellPodsOf(tell, service)
				c.restore(service)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the Services of function pods: %w", err)
	}
	return []cache.DoneChecker{pods.HasSyncedChecker(), services.HasSyncedChecker()}, nil
}

// deleted returns the object of a deletion, of which the last state may be missing.
func deleted[T any](object any) T {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	last, _ := object.(T)
	return last
}
