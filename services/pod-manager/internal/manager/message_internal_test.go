// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func TestMessage(t *testing.T) {
	at := time.Unix(1, 0)
	got := message(pool.Status{
		Function: pool.Function{Reference: "fn:v1", Digest: "sha256:1"}, Template: "v1",
		Limits:  pool.Limits{MaxPods: 1, MaxWaitlistLength: 2, MaxConcurrency: 3, MaxQueue: 4, TTL: time.Hour},
		Waiting: 5, Active: 6, LastFailure: "no such image", LastFailureTime: at, LeasesTotal: 7, ColdStartsTotal: 8,
		Pods: []pool.PodStatus{
			{
				Name: "fn-1", UID: "uid", Address: "a:1", Node: "n", TemplateVersion: "v0", Slot: 1,
				State: pool.Ready, Adopted: true, Active: 6, LeasesTotal: 7,
				Created: at, Ready: at.Add(time.Second), ReclaimAfter: at.Add(time.Minute),
			},
			{Name: "fn-2", State: pool.Starting, Phase: pool.PhasePulling, Reason: "pulling", Created: at},
		},
	}, "replica", "fns")
	want := &podmanagerv1.Pool{
		Key: &podmanagerv1.PoolKey{Reference: "fn:v1", Digest: "sha256:1"}, Replica: "replica", TemplateVersion: "v1",
		Limits: &podmanagerv1.Pool_Limits{
			MaxPods: 1, MaxWaitlistLength: 2, MaxConcurrency: 3, MaxQueue: 4, TimeToLive: durationpb.New(time.Hour),
		},
		Waiting: 5, Active: 6, LastFailure: "no such image", LastFailureTime: timestamppb.New(at),
		LeasesTotal: 7, ColdStartsTotal: 8,
		Pods: []*podmanagerv1.Pod{
			{
				Name: "fn-1", Namespace: "fns", Uid: "uid", Address: "a:1", Node: "n", TemplateVersion: "v0", Slot: 1,
				State: podmanagerv1.Pod_STATE_READY, Adopted: true, Active: 6, LeasesTotal: 7,
				CreateTime:  timestamppb.New(at),
				ReadyTime:   timestamppb.New(at.Add(time.Second)),
				ReclaimTime: timestamppb.New(at.Add(time.Minute)),
			},
			{
				Name: "fn-2", Namespace: "fns", State: podmanagerv1.Pod_STATE_STARTING, Phase: podmanagerv1.Phase_PHASE_PULLING,
				Reason: "pulling", CreateTime: timestamppb.New(at),
			},
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

// TestEachStateHasItsMessage looks for states that the contract has and the pools do not, or the other way round.
func TestEachStateHasItsMessage(t *testing.T) {
	inContract := len(podmanagerv1.Pod_State_name) - 1 // without STATE_UNSPECIFIED
	if len(podStates) != inContract || len(stateNames) != inContract {
		t.Errorf("%d states are converted and %d named, and the contract has %d",
			len(podStates), len(stateNames), inContract)
	}
}
