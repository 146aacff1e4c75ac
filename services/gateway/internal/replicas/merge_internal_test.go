// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// TestMerged merges the views of two replicas: both see fn-2, which the owner uses, and only the other
// one sees fn-1.
func TestMerged(t *testing.T) {
	at := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(time.Unix(0, 0).Add(d)) }
	key := &podmanagerv1.PoolKey{Reference: "fn", Digest: "sha256:1"}
	const owner, other = "10.0.0.2:9448", "10.0.0.1:9448"
	seen := views{
		owner: {{
			Key: key, Replica: "owner", Waiting: 2, Active: 3, LeasesTotal: 10, ColdStartsTotal: 1,
			Pods: []*podmanagerv1.Pod{{
				Name: "fn-2", Slot: 2, State: podmanagerv1.Pod_STATE_STARTING,
				Active: 3, LeasesTotal: 10, ReclaimTime: at(time.Hour),
			}},
		}},
		other: {{
			Key: key, Active: 1, LeasesTotal: 5,
			LastFailure: "no such image", LastFailureTime: at(time.Second),
			Pods: []*podmanagerv1.Pod{
				{Name: "fn-1", Slot: 1, State: podmanagerv1.Pod_STATE_READY},
				{
					Name: "fn-2", Slot: 2, State: podmanagerv1.Pod_STATE_READY,
					Active: 1, LeasesTotal: 5, ReclaimTime: at(time.Minute),
				},
			},
		}},
	}
	want := &podmanagerv1.Pool{
		Key: key, Replica: "owner", Waiting: 2, Active: 4, LeasesTotal: 15, ColdStartsTotal: 1,
		LastFailure: "no such image", LastFailureTime: at(time.Second),
		Pods: []*podmanagerv1.Pod{
			{Name: "fn-1", Slot: 1, State: podmanagerv1.Pod_STATE_READY},
			{
				Name: "fn-2", Slot: 2, State: podmanagerv1.Pod_STATE_STARTING,
				Active: 4, LeasesTotal: 15, ReclaimTime: at(time.Hour),
			},
		},
	}
	before := proto.CloneOf(seen[owner][0])
	got := seen.merge()
	if len(got) != 1 || !proto.Equal(got[0], want) {
		t.Errorf("merged:\n%v\nwant:\n%v", got, want)
	}
	if !proto.Equal(before, seen[owner][0]) {
		t.Errorf("the owner's view has become %v", seen[owner][0])
	}
}
