// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/prepull"
)

// PrepullConfig is what pulling images ahead takes.
type PrepullConfig struct {
	Client kubernetes.Interface
	// Namespace is where pre-pull pods live: that of function pods.
	Namespace string
	// Builder and Templates make them.
	Builder   podspec.Builder
	Templates *Templates
	// Listed returns what the pods of the functions run whose images nodes should have.
	Listed func(context.Context) ([]podspec.Workload, error)
	// Owns reports whether this replica owns an image's function right now.
	Owns      func(image string) bool
	Clock     *kubeclient.Clock
	Telemetry *telemetry.Telemetry
}

// Prepull has nodes pull the images of functions before a pod needs them. Use [NewPrepull].
type Prepull struct {
	config  PrepullConfig
	log     *slog.Logger
	metrics *prepullMetrics
	planner *prepull.Planner
	nodes   cache.SharedIndexInformer
	pods    cache.SharedIndexInformer
	// dirty has a capacity of one: a pod has changed.
	dirty   chan struct{}
	missing atomic.Int64 // images that nodes lack
}

// NewPrepull returns what pulls images ahead. It sends no request yet.
func NewPrepull(config PrepullConfig) (*Prepull, error) {
	p := &Prepull{
		config: config, log: config.Telemetry.Log, planner: prepull.NewPlanner(), dirty: make(chan struct{}, 1),
	}
	views, err := newMetrics(config.Telemetry.Meters)
	if err != nil {
		return nil, err
	}
	if p.metrics, err = newPrepullMetrics(config.Telemetry.Meters, p.missing.Load); err != nil {
		return nil, err
	}
	view := func(what string) *outage { return &outage{resource: what, log: p.log, metrics: views} }
	all := func(*metav1.ListOptions) {}
	p.nodes, err = newInformer(config.Client, &corev1.Node{}, config.Client.CoreV1().Nodes(), all, view("nodes"))
	if err != nil {
		return nil, err
	}
	labelled := func(o *metav1.ListOptions) { o.LabelSelector = podspec.LabelPrepull }
	p.pods, err = newInformer(config.Client, &corev1.Pod{}, p.podsClient(), labelled, view("pre-pull pods"))
	return p, err
}

func (p *Prepull) podsClient() typed.PodInterface {
	return p.config.Client.CoreV1().Pods(p.config.Namespace)
}

const (
	// prepullInterval is when nodes and listed functions are checked.
	prepullInterval = 10 * time.Second
	// prepullPause is the least time between two plans: one of many nodes takes a while.
	prepullPause = time.Second
)

// Run has nodes pull images until ctx ends.
func (p *Prepull) Run(ctx context.Context) error {
	changed := func(any) { p.markDirty() }
	handled, err := p.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(_, object any) { changed(object) },
	})
	if err != nil {
		return fmt.Errorf("watch pre-pull pods: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // they return no errors
	defer cancel()
	for _, informer := range []cache.SharedIndexInformer{p.nodes, p.pods} {
		running.Go(func() error { runInformer(ctx, informer); return nil })
	}
	if !cache.WaitFor(ctx, "", p.nodes.HasSyncedChecker(), handled.HasSyncedChecker()) {
		return nil
	}
	p.follow(ctx)
	return nil
}

func (p *Prepull) markDirty() {
	select {
	case p.dirty <- struct{}{}:
	default: // that something changed is known
	}
}

// follow carries out one plan after the other until ctx ends.
func (p *Prepull) follow(ctx context.Context) {
	ticker, pause := time.NewTicker(prepullInterval), time.NewTimer(0)
	defer ticker.Stop()
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		p.reconcile(ctx)
		pause.Reset(prepullPause)
		select {
		case <-p.dirty:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// reconcile makes a plan and carries it out.
func (p *Prepull) reconcile(ctx context.Context) {
	listed, err := p.config.Listed(ctx)
	template := p.config.Templates.Current()
	if err != nil || template.Version() == "" {
		return
	}
	requests := make(map[pool.Function]podspec.Request, len(listed))
	state := prepull.State{
		Now: p.config.Clock.Now(), Nodes: list[*corev1.Node](p.nodes.GetStore().List()), Owns: p.config.Owns,
	}
	for _, what := range listed {
		f := pool.Function{Reference: what.Function.Reference, Digest: what.Function.Digest}
		if !p.config.Owns(f.Reference) {
			continue
		}
		requests[f] = podspec.Request{Workload: what, Template: template}
		spec := &p.config.Builder.Pod(requests[f]).Spec
		state.Images = append(state.Images, prepull.Image{Function: f, Spec: spec})
	}
	for _, pod := range list[*corev1.Pod](p.pods.GetStore().List()) {
		if found := p.read(pod); found.Node != "" { // another program may use the label
			state.Pods = append(state.Pods, found)
		}
	}
	plan := p.planner.Plan(state)
	p.missing.Store(int64(plan.Missing))
	for _, pod := range plan.Delete {
		p.remove(ctx, pod)
	}
	for _, pull := range plan.Create {
		p.create(ctx, pull, p.config.Builder.Prepull(requests[pull.Function], pull.Node))
	}
}

// read returns what is known of a pre-pull pod.
func (p *Prepull) read(pod *corev1.Pod) prepull.Pod {
	f, node, ended, problem := podspec.Prepulled(pod)
	return prepull.Pod{
		Pull: prepull.Pull{Node: node, Function: f}, Name: pod.Name, UID: pod.UID,
		Created: p.config.Clock.Ours(pod.CreationTimestamp.Time), Deleting: pod.DeletionTimestamp != nil,
		Ended: ended, Problem: problem,
	}
}

// create creates a pod. One that exists has been created by another replica.
func (p *Prepull) create(ctx context.Context, pull prepull.Pull, pod *corev1.Pod) {
	err := kubeclient.Retry(ctx, func(ctx context.Context) error {
		_, err := p.podsClient().Create(ctx, pod, metav1.CreateOptions{FieldManager: podspec.FieldManager})
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
		p.ended(ctx, pull, "", fmt.Sprintf("create pod %s: %v", pod.Name, err))
	}
}

// remove deletes a pod that has ended. A pod that is not deleted now is in the next plan too.
func (p *Prepull) remove(ctx context.Context, pod prepull.Pod) {
	err := kubeclient.Retry(ctx, func(ctx context.Context) error {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}
		return p.podsClient().Delete(ctx, pod.Name, options)
	})
	switch {
	case err == nil:
		p.ended(ctx, pod.Pull, pod.UID, pod.Problem)
	case !gone(err) && ctx.Err() == nil:
		p.log.WarnContext(ctx, "pre-pull pod not deleted; it is tried again", "pod", pod.Name, "error", err)
	}
}

// ended records how an attempt has ended, and its pod.
func (p *Prepull) ended(ctx context.Context, pull prepull.Pull, pod types.UID, problem string) {
	p.planner.Ended(p.config.Clock.Now(), pull, pod, problem != "")
	p.metrics.ended(ctx, problem == "")
	if problem == "" {
		p.log.InfoContext(ctx, "image pulled ahead", "image", pull.Function.Reference, "node", pull.Node)
		return
	}
	p.log.WarnContext(ctx, "image not pulled ahead; it is tried again", "image", pull.Function.Reference,
		"node", pull.Node, "error", problem)
}
