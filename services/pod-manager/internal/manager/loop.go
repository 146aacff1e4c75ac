// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"maps"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// loop contains the state of a Manager. Only a single goroutine uses it. Its methods must not block.
type loop struct {
	config   Config
	metrics  *metrics
	settings Settings
	machine  *pool.Machine
	// lookUpImage looks up an image in the background. The loop then calls found with the result.
	lookUpImage func(image string, found func(*loop, podspec.Function, error))
	ticks       int
	waiters     map[pool.LeaseID]*waiter
	// images maps the functions with pools to their images, for building further pods.
	images map[pool.Function]podspec.Function
	// lookups is the number of leases that wait for the lookup of an image, by image.
	lookups map[string]int32
	// listedPods returns the listed images with their minimum numbers of pods. An image is listed if it is in
	// Functions or Configs.
	listedPods map[string]int
	// minimum maps listed images to their current functions. The pools of these functions keep the minimum.
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

// handleEvent applies an event to the pools, and carries out the resulting actions.
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
		l.metrics.rejections.add(a.Class.String())
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
			"reason", a.Reason.String())
		l.metrics.creations.add(a.Reason.String())
		l.createPod(a)
	case pool.Delete:
		l.config.Log.Info("deleting a function pod", "image", a.Function.Reference, "pod", a.Name, "reason", a.Reason)
		l.metrics.evictions.add(a.Eviction)
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

// createPod creates a pod. It first looks up the image if this replica does not know the image yet, because the
// function has no callers here.
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

// rejectionError returns the error that the caller of a rejected lease gets.
func rejectionError(a pool.Reject) error {
	err := fault.New(a.Class, "%s", a.Reason)
	if a.Elsewhere {
		return lease.OwnedBy(a.Owner, err)
	}
	return err
}

// standDown makes this replica give up its functions, for a reason. If the reason is empty, this replica owns
// functions again.
func (l *loop) standDown(reason string) {
	if reason == "" {
		l.config.Log.Info("function pods answer again")
	} else {
		l.config.Log.Warn("function pods do not answer; other replicas take over, and no pod is deleted",
			"reason", reason)
	}
	if l.config.StandDown != nil {
		l.config.StandDown(reason)
	}
}

// answerLease passes the answer for a waiting lease to the lease's caller.
func (l *loop) answerLease(id pool.LeaseID, a answer) {
	if w, ok := l.waiters[id]; ok {
		delete(l.waiters, id)
		w.answered <- a // does not block, because each waiter gets a single answer
	}
}

// countPods stores the numbers of pods for the metrics. Every forgetTicks ticks, it deletes the images of functions
// that are neither listed nor in use.
func (l *loop) countPods() {
	counts := counts{owned: l.machine.Owned(), takeovers: l.machine.Takeovers(), outdated: l.machine.Outdated()}
	l.machine.CountPods(func(f pool.Function, s pool.PodState, pods int) {
		counts.pods = append(counts.pods, podCount{f.Reference, s, pods})
	})
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

// forgetTicks is the number of ticks between two deletions of unused images.
const forgetTicks = 10
