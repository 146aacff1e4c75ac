// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Functions returns all functions that have a pool, oldest pool first.
func (m *Machine) Functions() []Function {
	functions := make([]Function, 0, len(m.pools))
	for _, p := range m.pools {
		functions = append(functions, p.function)
	}
	return functions
}

// Counts contains numbers of functions and pods for metrics.
type Counts struct {
	// Owned is the number of functions that have a pool and are owned by this replica.
	Owned int
	// Outdated is the number of pods that this replica must replace because their template or settings changed. Pods
	// of unused functions do not count, because they expire without a replacement.
	Outdated int
	// Takeovers is the number of pools with pods that this replica took over from its peers since its start.
	Takeovers int64
	// Pods contains the number of pods for each function and pod state.
	Pods map[PodKind]int
}

// PodKind is the key of [Counts.Pods].
type PodKind struct {
	Function Function
	State    podmanagerv1.Pod_State
}

// Counts returns the current numbers of functions and pods.
func (m *Machine) Counts() Counts {
	c := Counts{Takeovers: m.ownership.takeovers, Pods: make(map[PodKind]int)}
	for _, p := range m.pools {
		for _, pod := range p.pods {
			c.Pods[PodKind{p.function, pod.publicState()}]++
		}
		if !p.owner.Mine {
			continue
		}
		c.Owned++
		if p.versionTarget() > 0 {
			_, _, outdated := p.countVersions(m.step.at)
			c.Outdated += outdated
		}
	}
	return c
}

// Status returns the state of a function's pool as an API message, or false if the function has no pool. Callers
// must set the replica and the namespace in the message.
func (m *Machine) Status(f Function) (*podmanagerv1.Pool, bool) {
	p, ok := m.byFunction[f]
	if !ok {
		return nil, false
	}
	s := &podmanagerv1.Pool{
		Key:             &podmanagerv1.PoolKey{Reference: f.Reference, Digest: f.Digest},
		TemplateVersion: m.config.Template,
		Waiting:         clamp(len(p.queue)),
		Limits: &podmanagerv1.Pool_Limits{
			MaxPods: clamp(p.limits.MaxPods), MaxWaitlistLength: clamp(p.limits.MaxWaitlistLength),
			MaxConcurrency: clamp(p.limits.MaxConcurrency), MaxQueue: clamp(p.limits.MaxQueue),
			TimeToLive: durationpb.New(p.limits.TTL),
		},
		LastFailure: p.failure.problem.Reason, LastFailureTime: timestamp(p.failure.at),
		LeasesTotal: p.leasesTotal, ColdStartsTotal: p.coldStartsTotal,
	}
	for _, pod := range p.pods {
		s.Active += clamp(pod.use.leases)
		s.Pods = append(s.Pods, pod.status(p.isOutdated(m.step.at, pod)))
	}
	return s, true
}

// status converts the pod to an API message. outdated is true if the pod's template or settings are outdated.
func (p *pod) status(outdated bool) *podmanagerv1.Pod {
	created := cmp.Or(p.observed.Created, p.learnedAt.at)
	s := &podmanagerv1.Pod{
		Name: p.name, Uid: p.uid, Slot: clamp(p.slot), Address: p.observed.Address, Node: p.observed.Node,
		TemplateVersion: p.observed.TemplateVersion, Adopted: p.adopted, State: p.publicState(), Reason: p.reason,
		Active: clamp(p.use.leases), LeasesTotal: p.use.total, CreateTime: timestamp(created),
		ReadyTime: timestamp(p.becameReady.at), ReclaimTime: timestamp(p.expiry.at),
	}
	if p.state == ready && outdated {
		s.Reason = "it is of another template or other settings, and serves until a new pod is ready"
	}
	if p.state == creating || p.state == starting {
		s.Reason = cmp.Or(p.observed.Problem.Reason, p.observed.Reason)
	}
	if s.GetState() == podmanagerv1.Pod_STATE_STARTING {
		s.Phase = p.phase()
	}
	return s
}

func (p *pod) publicState() podmanagerv1.Pod_State {
	switch {
	case p.state == ready:
		return podmanagerv1.Pod_STATE_READY
	case p.state == draining && p.removal.unsound:
		return podmanagerv1.Pod_STATE_FAILED
	case p.state == draining:
		return podmanagerv1.Pod_STATE_DRAINING
	case p.state == deleting:
		return podmanagerv1.Pod_STATE_DELETING
	default:
		return podmanagerv1.Pod_STATE_STARTING
	}
}

// timestamp converts a time to a protobuf timestamp. It returns nil for the zero time.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// clamp converts a count to int32. It returns the maximum int32 for larger counts.
func clamp(n int) int32 { return int32(min(n, 1<<31-1)) } //nolint:gosec // bounded by the line itself
