package pool

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Functions returns the functions that have pools, in no order.
func (m *Machine) Functions() []Function {
	functions := make([]Function, 0, len(m.pools))
	for _, p := range m.pools {
		functions = append(functions, p.function)
	}
	return functions
}

// Changed returns the functions whose pools may have changed since it was last called.
func (m *Machine) Changed() []Function {
	functions := make([]Function, 0, len(m.changed))
	for f := range m.changed {
		functions = append(functions, f)
	}
	clear(m.changed)
	return functions
}

// Waiting is how many leases wait in all pools.
func (m *Machine) Waiting() int { return m.waiting }

// Snapshot returns the pool of a function as it is now, or nil if there is none. What
// the machine cannot know is left out: the replica, and namespaces.
func (m *Machine) Snapshot(f Function) *podmanagerv1.Pool {
	p, ok := m.byFunction[f]
	if !ok {
		return nil
	}
	s := &podmanagerv1.Pool{
		Key:             &podmanagerv1.PoolKey{Reference: f.Reference, Digest: f.Digest},
		TemplateVersion: m.config.Template,
		Waiting:         clamp(len(p.queue)),
		Active:          clamp(p.active()),
		Limits:          p.limits.snapshot(),
		LastFailure:     p.failure.problem.Reason,
		LastFailureTime: timestamp(p.failure.at),
		LeasesTotal:     p.leasesTotal,
		ColdStartsTotal: p.coldStartsTotal,
	}
	for _, pod := range p.pods {
		s.Pods = append(s.Pods, pod.snapshot())
	}
	return s
}

func (l Limits) snapshot() *podmanagerv1.Pool_Limits {
	return &podmanagerv1.Pool_Limits{
		MaxPods:           clamp(l.MaxPods),
		MaxWaitlistLength: clamp(l.MaxWaitlistLength),
		MaxConcurrency:    clamp(l.MaxConcurrency),
		MaxQueue:          clamp(l.MaxQueue),
		TimeToLive:        durationpb.New(l.TTL),
	}
}

func (p *pod) snapshot() *podmanagerv1.Pod {
	s := &podmanagerv1.Pod{
		Name: p.name, Uid: p.uid, Slot: clamp(p.slot), Address: p.seen.Address, Node: p.seen.Node,
		TemplateVersion: p.seen.TemplateVersion, Adopted: p.adopted,
		Active: clamp(p.active), LeasesTotal: p.leasesTotal,
		CreateTime: timestamp(p.created), ReadyTime: timestamp(p.readySince), ReclaimTime: timestamp(p.reclaimAfter),
	}
	s.State, s.Reason = p.publicState()
	if s.State == podmanagerv1.Pod_STATE_STARTING {
		s.Phase = p.phase()
	}
	return s
}

// publicState is a pod's state as the contract has it, and what there is to say about it.
func (p *pod) publicState() (podmanagerv1.Pod_State, string) {
	switch p.state {
	case creating, starting:
		if p.seen.Problem.Reason != "" {
			return podmanagerv1.Pod_STATE_STARTING, p.seen.Problem.Reason
		}
		return podmanagerv1.Pod_STATE_STARTING, p.seen.Reason
	case ready:
		return podmanagerv1.Pod_STATE_READY, ""
	case checking:
		return podmanagerv1.Pod_STATE_STARTING, "an evaluation found it broken, and it is asked for its health"
	case draining:
		if p.ending.unsound {
			return podmanagerv1.Pod_STATE_FAILED, p.ending.reason
		}
		return podmanagerv1.Pod_STATE_DRAINING, p.ending.reason
	default:
		return podmanagerv1.Pod_STATE_DELETING, p.ending.reason
	}
}

// timestamp converts a time; the zero time is none.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// clamp converts a count, which is far below the limit.
func clamp(n int) int32 { return int32(min(n, 1<<31-1)) } //nolint:gosec // bounded by the line itself
