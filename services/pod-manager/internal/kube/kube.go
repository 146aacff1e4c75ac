// SPDX-License-Identifier: Apache-2.0

// Package kube manages function pods in Kubernetes. It sends the states of pods to package pool, which decides
// which pods exist, and carries out the pool's actions. Package kube itself decides only about objects that belong
// to no pool, see [Cluster.Run], and about init containers as a fallback for image volumes.
//
// Files, in reading order: kube (wiring); actions, tasks (their order), observe (status updates); gc (garbage);
// templates and launching (the source of pods); porchresources, functionconfigs and functionconfigstatus (the
// resources by which Porch configures its function runner); informer and metrics (helpers).
package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

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

// Config configures a Cluster.
type Config struct {
	Client kubernetes.Interface
	// Namespace is the namespace of function pods.
	Namespace string
	// PodIP is true if gateways reach pods by the pods' IP addresses. Otherwise, each pod gets a Service.
	PodIP bool
	// Builder builds pods and Services.
	Builder podspec.Builder
	// Send passes an event to the pools. It may block.
	Send func(pool.Event)
	// Templates provides the template for new pods and for Services that must be created again.
	Templates *Templates
	// ScanInterval is the interval of scans for Services without a pod and for pods without a Service.
	ScanInterval time.Duration
	// Launching chooses the mechanism that adds the wrapper server to pods: an image volume if nodes support it, else an
	// init container. It is nil if a setting determines the mechanism.
	Launching *Launching
	// Owns reports whether this replica owns an image's function, and may delete the function's pods now. Garbage
	// collection of Services passes a Service's id instead of an image.
	Owns func(image string) bool
	// Clock converts between this machine's clock and the API server's clock, for times in pods.
	Clock     *kubeclient.Clock
	Telemetry *telemetry.Telemetry
}

// Cluster manages the function pods of a namespace while [Cluster.Run] runs.
type Cluster struct {
	config  Config
	log     *slog.Logger
	metrics *metrics
	pods    cache.SharedIndexInformer
	// services watches Services even if gateways reach pods without them. Services may remain from an earlier
	// configuration, and garbage collection must delete them.
	services cache.SharedIndexInformer
	tasks    *tasks
	synced   chan struct{}
	outages  []*outage // failure trackers of both informers
	// sending is a lock for reading and sending a pod's state. It keeps the states that the pools receive in order.
	sending sync.Mutex
	// deleting contains the UIDs of pods that are being deleted together with their Services. Garbage collection also
	// creates missing Services of pods, but must not create the Services of these pods again.
	deleting sync.Map
	// extensions contains pods' new expiry times, by pod name, until they are written to the pods' annotations.
	extensions sync.Map
}

// byID is the name of the index of pods by their id label. The Service of a pod has this id as its name.
const byID = "id"

// New returns a Cluster. It sends no requests before [Cluster.Run].
func New(config Config) (*Cluster, error) {
	metrics := newMetrics(config.Telemetry.Meters)
	c := &Cluster{
		config: config, log: config.Telemetry.Log, metrics: metrics,
		tasks: newTasks(), synced: make(chan struct{}),
	}
	labelled := func(o *metav1.ListOptions) { o.LabelSelector = podspec.LabelID }
	var err error
	c.pods, err = newInformer(config.Client, &corev1.Pod{}, c.podsClient(), labelled, c.newOutage("pods"))
	if err != nil {
		return nil, err
	}
	c.services, err = newInformer(config.Client, &corev1.Service{}, c.servicesClient(), labelled, c.newOutage("services"))
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

// newOutage returns a tracker for the failures of an informer, and adds it to c.outages.
func (c *Cluster) newOutage(what string) *outage {
	o := &outage{resource: what, log: c.log, metrics: c.metrics}
	c.outages = append(c.outages, o)
	return o
}

// Obstacle returns the error that delays [Cluster.Synced], or nil if no error is known. If a user must grant a missing
// right, it is a [fault.Precondition] error.
func (c *Cluster) Obstacle() error {
	for _, o := range c.outages {
		err := o.obstacle("function pods", "deploy/components/function-pods")
		if err != nil {
			return err
		}
	}
	return nil
}

// Synced returns a channel that closes once the pools have received all pods that existed at the start.
func (c *Cluster) Synced() <-chan struct{} { return c.synced }

// Run watches function pods, sends their states to the pools, and carries out the pools' actions, until ctx is
// cancelled. It also deletes Services without a pod, and creates the missing Services of pods. Events about the
// same pod are sent in order.
func (c *Cluster) Run(ctx context.Context) error {
	handled, err := c.registerHandlers()
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { runInformer(ctx, c.pods) })
	running.Go(func() { runInformer(ctx, c.services) })
	running.Go(func() { c.tasks.run(ctx) })
	running.Go(func() { c.collectGarbage(ctx) })
	if cache.WaitFor(ctx, "", handled...) {
		close(c.synced)
	}
	<-ctx.Done()
	return nil
}

// registerHandlers registers event handlers that send each change of a pod to the pools. The returned checkers are done
// once all objects that existed at the start have been sent.
func (c *Cluster) registerHandlers() ([]cache.DoneChecker, error) {
	pods, err := c.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.sendPod(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { c.sendPod(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if pod := deletedObject[*corev1.Pod](object); pod != nil {
				c.sendGone(pod)
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
		// A pod's address depends on its Service. After a change of the Service, send the pod's state to the pools again.
		AddFunc: func(object any) { c.sendPodsOf(object.(*corev1.Service)) },
		DeleteFunc: func(object any) {
			if service := deletedObject[*corev1.Service](object); service != nil {
				c.sendPodsOf(service)
				c.recreateService(service)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the Services of function pods: %w", err)
	}
	return []cache.DoneChecker{pods.HasSyncedChecker(), services.HasSyncedChecker()}, nil
}

// deletedObject returns the deleted object of an informer's event, or nil if the event does not contain it.
func deletedObject[T any](object any) T {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	last, _ := object.(T)
	return last
}
