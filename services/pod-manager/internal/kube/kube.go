// SPDX-License-Identifier: Apache-2.0

// Package kube is the adapter to Kubernetes: it sends the pools the status updates of pods, and
// carries out their actions. The pools decide about their pods; this package decides only about
// what no pool owns, and whether a failed image volume is worth another attempt.
//
// It also collects garbage, see [Cluster.Run]. Porch's function runner labels its pods and
// Services like this one: its pods belong to no pool, but once that runner is no longer there to
// delete them, this package deletes them and their Services at their expiry.
//
// Files, in reading order:
//   - kube has the informers of pods and Services, and the wiring;
//   - create and lifetime carry out actions, tasks runs them in order, and observe sends status
//     updates;
//   - plan and gc collect garbage;
//   - templates and launching have what pods are made from;
//   - porchresources follows the resources by which Porch configures its function runner:
//     basetemplates has its templates, functionconfigs its FunctionConfigs, functionconfigstatus
//     their statuses, and report the events about broken ones;
//   - informer, slim, outage and metrics serve all.
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
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
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
	// Builder makes pods and Services.
	Builder podspec.Builder
	// Templates has the template for pods that were decided about before there was one,
	// and for Services that have to be made again.
	Templates *Templates
	// ScanInterval is the time between two scans of the garbage collection.
	ScanInterval time.Duration
	// Launching checks image volume support of nodes; nil if there is nothing to check.
	Launching *Launching
	// Owns reports whether this replica owns an image's function right now, or collects the
	// garbage with an id; nil if it owns all.
	Owns func(image string) bool
	// Clock translates between this machine's times and those in pods.
	Clock     *kubeclient.Clock
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
	outages  []*outage // of both informers
	// sending serializes status updates of pods, so that an older one never follows a newer one.
	sending sync.Mutex
	// deleting are the UIDs of pods that this process deletes together with their Services.
	deleting sync.Map
	// extensions are the waiting [pool.Extend] actions, by the pod's name.
	extensions sync.Map
}

// byID is the index of pods by their id, which is their Service's name.
const byID = "id"

// New returns a cluster. It sends no request yet.
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
	c.pods, err = newInformer(config.Client, &corev1.Pod{}, c.podsClient(), labelled, c.outage("pods"))
	if err != nil {
		return nil, err
	}
	c.services, err = newInformer(config.Client, &corev1.Service{}, c.servicesClient(), labelled, c.outage("services"))
	if err != nil {
		return nil, err
	}
	index := func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Labels[podspec.LabelID]}, nil }
	if err := c.pods.AddIndexers(cache.Indexers{byID: index}); err != nil {
		return nil, fmt.Errorf("set up the informer of function pods: %w", err)
	}
	return c, nil
}

func (c *Cluster) podsClient() typed.PodInterface {
	return c.config.Client.CoreV1().Pods(c.config.Namespace)
}

func (c *Cluster) servicesClient() typed.ServiceInterface {
	return c.config.Client.CoreV1().Services(c.config.Namespace)
}

// outage returns a new tracker of an informer's failures.
func (c *Cluster) outage(what string) *outage {
	o := &outage{resource: what, log: c.log, metrics: c.metrics}
	c.outages = append(c.outages, o)
	return o
}

// Obstacle is why [Cluster.Synced] is still open; nil if nothing is known that would
// keep it so. A lack of rights has class [fault.Precondition].
func (c *Cluster) Obstacle() error {
	for _, o := range c.outages {
		err := o.obstacle("function pods", "which function pods there are", "deploy/components/function-pods")
		if err != nil {
			return err
		}
	}
	return nil
}

// Synced closes once the pools have an event for each pod that existed at the start.
func (c *Cluster) Synced() <-chan struct{} { return c.synced }

// Run calls send with status updates of pods and carries out actions, until ctx ends. Events
// about one pod come in order; send may block.
//
// It also collects garbage that no pool decides about: it deletes Services without a pod and
// expired pods of Porch's function runner, and creates missing Services of pods again.
func (c *Cluster) Run(ctx context.Context, send func(pool.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	handled, err := c.watch(send)
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // they return no errors
	defer cancel()
	if err != nil {
		return err
	}
	run := func(do func()) { running.Go(func() error { do(); return nil }) }
	run(func() { runInformer(ctx, c.pods) })
	run(func() { runInformer(ctx, c.services) })
	run(func() { c.tasks.run(ctx, send) })
	run(func() { c.collectGarbage(ctx) })
	if cache.WaitFor(ctx, "", handled...) {
		close(c.synced)
	}
	<-ctx.Done()
	return nil
}

// watch registers the event handlers. It returns what is done once the handlers got all
// objects that existed at the start.
func (c *Cluster) watch(send func(pool.Event)) ([]cache.DoneChecker, error) {
	pods, err := c.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.sendPod(send, object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { c.sendPod(send, object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if pod := deleted[*corev1.Pod](object); pod != nil {
				c.sendGone(send, pod)
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
		AddFunc: func(object any) { c.sendPodsOf(send, object.(*corev1.Service)) },
		DeleteFunc: func(object any) {
			if service := deleted[*corev1.Service](object); service != nil {
				c.sendPodsOf(send, service)
				c.recreateService(service)
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
