// Package kube is the rim to Kubernetes: it tells the pools what becomes of pods, and
// carries out what they decide. It decides nothing about pods itself.
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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
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
	// ScanInterval is the time between two searches for what belongs to nobody.
	ScanInterval time.Duration
	Telemetry    *telemetry.Telemetry
}

// Cluster is the function pods of a namespace. Use [New]; Run has to run while it is
// used.
type Cluster struct {
	config   Config
	log      *slog.Logger
	metrics  *metrics
	factory  informers.SharedInformerFactory
	pods     cache.SharedIndexInformer
	services cache.SharedIndexInformer
	tasks    *tasks
	synced   chan struct{}
	obstacle obstacle
	// going are the UIDs of pods that were deleted here: their Services go with them.
	going sync.Map
}

// byID is the index of pods by their id, which is their Service's name.
const byID = "id"

// New returns a cluster. It asks for nothing yet.
func New(config Config) (*Cluster, error) {
	metrics, err := newMetrics(config.Telemetry.Meters)
	if err != nil {
		return nil, err
	}
	ours := func(o *metav1.ListOptions) { o.LabelSelector = podspec.LabelID }
	factory := informers.NewSharedInformerFactoryWithOptions(config.Client, 0,
		informers.WithNamespace(config.Namespace), informers.WithTweakListOptions(ours), informers.WithTransform(slim))
	c := &Cluster{
		config: config, log: config.Telemetry.Log, metrics: metrics, factory: factory,
		pods: factory.Core().V1().Pods().Informer(), tasks: newTasks(), synced: make(chan struct{}),
	}
	if !config.PodIP {
		c.services = factory.Core().V1().Services().Informer()
	}
	index := func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Labels[podspec.LabelID]}, nil }
	if err := c.pods.AddIndexers(cache.Indexers{byID: index}); err != nil {
		return nil, fmt.Errorf("set up the view of function pods: %w", err)
	}
	return c, nil
}

// slim drops what nobody reads, which is a good part of an object.
func slim(object any) (any, error) {
	if meta, ok := object.(metav1.Object); ok {
		meta.SetManagedFields(nil)
	}
	return object, nil
}

// Synced closes when all pods that existed at the start have been told.
func (c *Cluster) Synced() <-chan struct{} { return c.synced }

// Run tells what becomes of pods and carries out actions, until ctx ends. Events about
// one pod come in order; tell may keep them waiting.
func (c *Cluster) Run(ctx context.Context, tell func(pool.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := c.watch(tell); err != nil {
		return err
	}
	c.factory.Start(ctx.Done())
	defer c.factory.Shutdown()
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // they return no errors
	running.Go(func() error { c.tasks.run(ctx, tell); return nil })
	running.Go(func() error { c.keepHouse(ctx); return nil })
	<-ctx.Done()
	return nil
}

// watch has events told from when the informers start.
func (c *Cluster) watch(tell func(pool.Event)) error {
	podsTold, err := c.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.tellPod(tell, object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { c.tellPod(tell, object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if pod := deleted[*corev1.Pod](object); pod != nil {
				c.going.Delete(pod.UID)
				tell(pool.PodGone{Name: pod.Name, UID: string(pod.UID)})
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch function pods: %w", err)
	}
	watches := []cache.SharedIndexInformer{c.pods}
	handlers := []cache.InformerSynced{podsTold.HasSynced}
	if c.services != nil {
		servicesTold, err := c.services.AddEventHandler(cache.ResourceEventHandlerFuncs{
			// A pod has its address once its Service is there.
			AddFunc: func(object any) { c.tellPodsOf(tell, object.(*corev1.Service)) },
			DeleteFunc: func(object any) {
				if service := deleted[*corev1.Service](object); service != nil {
					c.restore(service)
				}
			},
		})
		if err != nil {
			return fmt.Errorf("watch the Services of function pods: %w", err)
		}
		watches, handlers = append(watches, c.services), append(handlers, servicesTold.HasSynced)
	}
	for _, w := range watches {
		if err := w.SetWatchErrorHandlerWithContext(c.watchFailed); err != nil {
			return fmt.Errorf("watch function pods: %w", err)
		}
	}
	c.tasks.after(handlers, func() { close(c.synced) })
	return nil
}

// watchFailed takes note that a watch broke. It is taken up again by itself.
func (c *Cluster) watchFailed(ctx context.Context, _ *cache.Reflector, err error) {
	c.metrics.watchFailed(ctx)
	c.obstacle.is(err)
	c.log.WarnContext(ctx, "the view of the cluster is interrupted: pods that run go on serving", "error", err)
}

// tellPod tells what Kubernetes says about a pod, if it is one of ours.
func (c *Cluster) tellPod(tell func(pool.Event), pod *corev1.Pod) {
	if o, ok := c.observe(pod); ok {
		tell(pool.PodObserved{Observation: o})
	}
}

// tellPodsOf tells about the pods of a Service.
func (c *Cluster) tellPodsOf(tell func(pool.Event), service *corev1.Service) {
	for _, pod := range c.podsOf(service.Name) {
		c.tellPod(tell, pod)
	}
}

// podsOf returns the pods with an id.
func (c *Cluster) podsOf(id string) []*corev1.Pod {
	objects, err := c.pods.GetIndexer().ByIndex(byID, id)
	if err != nil {
		return nil // there is that index
	}
	pods := make([]*corev1.Pod, 0, len(objects))
	for _, object := range objects {
		pods = append(pods, object.(*corev1.Pod))
	}
	return pods
}

// deleted returns the object of a deletion, of which the last state may be missing.
func deleted[T any](object any) T {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	last, _ := object.(T)
	return last
}

// service looks a Service up in what is known of them; nil if there is none.
func (c *Cluster) service(id string) *corev1.Service {
	service, err := listers.NewServiceLister(c.services.GetIndexer()).Services(c.config.Namespace).Get(id)
	if err != nil {
		return nil
	}
	return service
}
