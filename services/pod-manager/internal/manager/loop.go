// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"maps"
	"slices"

	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// loop contains the state of a Manager. Only the manager's main goroutine uses it. The methods must not block, because
// all leases wait for this goroutine.
type loop struct {
	config   Config
	metrics  *metrics
	settings Settings
	machine  *pool.Machine
	// lookUpImage looks up an image in the background, and then calls the callback in the manager's main goroutine.
	lookUpImage func(image string, found func(*loop, podspec.Function, error))
	// count increments a counter, with the reason as a label.
	count   func(counter metric.Int64Counter, reason string)
	ticks   int
	waiters map[pool.LeaseID]*waiter
	// images contains the image properties that new pods require, for each function with a pool.
	images map[pool.Function]podspec.Function
	// lookups contains the number of leases that wait for each image's lookup in a registry.
	lookups map[string]int32
	// listedPods maps images to their configured minimum numbers of pods.
	listedPods map[string]int
	// minimum maps each image with a minimum number of pods to the function whose pool keeps these pods. This function has
	// the current digest of the image's tag.
	minimum map[string]pool.Function
}

func newLoop(config Config, metrics *metrics) *loop {
	return &loop{
		config: config, metrics: metrics, settings: config.Settings,
		machine:    pool.New(config.Settings.poolConfig()),
		waiters:    make(map[pool.LeaseID]*waiter),
		images:     make(map[pool.Function]podspec.Function),
		lookups:    make(map[string]int32),
		listedPods: config.Settings.listedPods(),
		minimum:    make(map[string]pool.Function),
	}
}

// handleEvent passes an event to the pools, and carries out the resulting actions.
func (l *loop) handleEvent(event pool.Event) {
	for _, action := range l.machine.Handle(l.config.Now(), event) {
		l.carryOut(action)
	}
}

func (l *loop) carryOut(action pool.Action) {
	switch a := action.(type) {
	case pool.Grant:
		l.answerLease(a.Lease, answer{grant: a, maxTime: l.settings.entryOf(a.Function).MaxEvaluationTime})
	case pool.Reject:
		l.count(l.metrics.rejections, a.Class.String())
		err := rejectionError(a)
		if a.RetryAfter > 0 {
			err = fault.WithRetryAfter(err, a.RetryAfter)
		}
		l.answerLease(a.Lease, answer{err: err})
	case pool.Report:
		if w, ok := l.waiters[a.Lease]; ok {
			w.replaceReport(a.Waiting)
		}
	case pool.Create:
		l.config.Log.Info("creating a function pod", "image", a.Function.Reference, "pod", a.Name,
			"reason", a.Reason)
		l.count(l.metrics.creations, string(a.Reason))
		l.createPod(a)
	case pool.Delete:
		l.config.Log.Info("deleting a function pod", "image", a.Function.Reference, "pod", a.Name, "reason", a.Reason)
		l.config.Cluster.Delete(a)
	case pool.Extend:
		l.config.Cluster.Extend(a)
	case pool.Probe:
		l.config.Prober.Probe(a)
	case pool.Unprobe:
		l.config.Prober.Forget(a.Name, a.UID)
	case pool.StandDown:
		l.standDown(a.Reason)
	}
}

// createPod creates a pod in the background. If no caller has requested the function from this replica yet, it first
// looks up the properties of the image.
func (l *loop) createPod(a pool.Create) {
	if image, known := l.images[a.Function]; known {
		l.config.Cluster.Create(a, l.settings.workloadOf(image))
		return
	}
	l.lookUpImage(a.Function.Reference+"@"+a.Function.Digest, func(l *loop, image podspec.Function, err error) {
		if err != nil {
			problem := pool.Problem{Kind: pool.Lost, Reason: err.Error()}
			l.handleEvent(pool.CreateFailed{Name: a.Name, Problem: problem})
			return
		}
		l.images[a.Function] = image
		l.config.Cluster.Create(a, l.settings.workloadOf(image))
	})
}

// rejectionError returns the error for the caller of a rejected lease. If another replica may grant the lease, the
// error redirects the caller.
func rejectionError(a pool.Reject) error {
	err := fault.New(a.Class, "%s", a.Reason)
	if a.Elsewhere {
		return lease.OwnedBy(a.Owner, err)
	}
	return err
}

// standDown hands over this replica's functions to its peers, because function pods do not answer this replica. An
// empty reason means that pods answer again, and permits this replica to own functions.
func (l *loop) standDown(reason string) {
	if reason == "" {
		l.config.Log.Info("function pods answer again")
	} else {
		l.config.Log.Warn("function pods do not answer; other replicas take over, and no pod is deleted",
			"reason", reason)
	}
	l.config.StandDown(reason)
}

// answerLease passes an answer to the caller that waits for the lease.
func (l *loop) answerLease(id pool.LeaseID, a answer) {
	if w, ok := l.waiters[id]; ok {
		delete(l.waiters, id)
		w.answered <- a // does not block, because each waiter gets a single answer
	}
}

// countPods updates the numbers of pods for the metrics. Every 10 seconds (forgetTicks), it also removes images without
// a pool and without a minimum number of pods from memory.
func (l *loop) countPods() {
	counts := l.machine.Counts()
	l.metrics.counts.Store(&counts)
	if l.ticks++; l.ticks%forgetTicks != 0 {
		return
	}
	known := make(map[pool.Function]podspec.Function, len(l.images))
	for _, f := range slices.AppendSeq(l.machine.Functions(), maps.Values(l.minimum)) {
		if image, ok := l.images[f]; ok {
			known[f] = image
		}
	}
	l.images = known
}

// forgetTicks is the number of ticks (seconds) after which countPods again removes unused images from memory.
const forgetTicks = 10
