// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// message is a pool in the contract's form. Replica and namespace are what the pool does not know.
func message(s pool.Status, replica, namespace string) *podmanagerv1.Pool {
	p := &podmanagerv1.Pool{
		Key:             &podmanagerv1.PoolKey{Reference: s.Function.Reference, Digest: s.Function.Digest},
		Replica:         replica,
		TemplateVersion: s.Template,
		Waiting:         clamp(s.Waiting),
		Active:          clamp(s.Active),
		Limits: &podmanagerv1.Pool_Limits{
			MaxPods:           clamp(s.Limits.MaxPods),
			MaxWaitlistLength: clamp(s.Limits.MaxWaitlistLength),
			MaxConcurrency:    clamp(s.Limits.MaxConcurrency),
			MaxQueue:          clamp(s.Limits.MaxQueue),
			TimeToLive:        durationpb.New(s.Limits.TTL),
		},
		LastFailure:     s.LastFailure,
		LastFailureTime: timestamp(s.LastFailureTime),
		LeasesTotal:     s.LeasesTotal,
		ColdStartsTotal: s.ColdStartsTotal,
	}
	for _, pod := range s.Pods {
		p.Pods = append(p.Pods, podMessage(pod, namespace))
	}
	return p
}

// podMessage is a pod in the contract's form.
func podMessage(s pool.PodStatus, namespace string) *podmanagerv1.Pod {
	return &podmanagerv1.Pod{
		Name: s.Name, Namespace: namespace, Uid: s.UID, Slot: clamp(s.Slot), Address: s.Address, Node: s.Node,
		State: podStates[s.State], Phase: s.Phase, Reason: s.Reason,
		TemplateVersion: s.TemplateVersion, Adopted: s.Adopted,
		Active: clamp(s.Active), LeasesTotal: s.LeasesTotal,
		CreateTime: timestamp(s.Created), ReadyTime: timestamp(s.Ready), ReclaimTime: timestamp(s.ReclaimAfter),
	}
}

// podStates are the states of pods in the contract's form.
var podStates = map[pool.PodState]podmanagerv1.Pod_State{
	pool.Starting: podmanagerv1.Pod_STATE_STARTING,
	pool.Ready:    podmanagerv1.Pod_STATE_READY,
	pool.Draining: podmanagerv1.Pod_STATE_DRAINING,
	pool.Failed:   podmanagerv1.Pod_STATE_FAILED,
	pool.Deleting: podmanagerv1.Pod_STATE_DELETING,
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
