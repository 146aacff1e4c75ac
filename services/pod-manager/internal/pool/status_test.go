// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	p := newPlayer(behaviour{config: func(p *player) { p.limits.MaxPods = 3; p.limits.MaxWaitlistLength = 1 }})
	for _, event := range []string{
		"see f-4 running deleting reclaim=5m", "request 1 f", "request 2 f", "request 3 f", "request 4 f",
		"after 2s", "up f-1", "see f-2 pulling", "see f-3 fatal", "request 5 f", "end 4",
	} {
		if _, err := p.play(event); err != nil {
			t.Fatal(err)
		}
	}
	at := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(start.Add(d)) }
	want := &podmanagerv1.Pool{
		Key: &podmanagerv1.PoolKey{Reference: "f", Digest: function("f").Digest}, TemplateVersion: "v1",
		Waiting: 2, Active: 2, LeasesTotal: 2, ColdStartsTotal: 2,
		LastFailure: "the kubelet says fatal", LastFailureTime: at(2 * time.Second),
		Limits: &podmanagerv1.Pool_Limits{
			MaxPods: 3, MaxWaitlistLength: 1, MaxConcurrency: 2, MaxQueue: 10, TimeToLive: durationpb.New(10 * time.Minute),
		},
		Pods: []*podmanagerv1.Pod{
			{
				Name: "f-1", Uid: "uid of f-1", Slot: 1, Address: "f-1:9446", TemplateVersion: "v1",
				State: podmanagerv1.Pod_STATE_READY, Active: 2, LeasesTotal: 2,
				CreateTime: at(2 * time.Second), ReadyTime: at(2 * time.Second), ReclaimTime: at(10*time.Minute + 2*time.Second),
			},
			{
				Name: "f-2", Uid: "uid of f-2", Slot: 2, TemplateVersion: "v1", State: podmanagerv1.Pod_STATE_STARTING,
				Phase: pool.PhasePulling, CreateTime: at(2 * time.Second), ReclaimTime: at(10 * time.Minute),
			},
			{
				Name: "f-3", Uid: "uid of f-3", Slot: 3, TemplateVersion: "v1", State: podmanagerv1.Pod_STATE_DELETING,
				Reason: "the kubelet says fatal", CreateTime: at(2 * time.Second), ReclaimTime: at(10 * time.Minute),
			},
			{
				Name: "f-4", Uid: "uid of f-4", Slot: 4, Address: "f-4:9446", TemplateVersion: "v1",
				State: podmanagerv1.Pod_STATE_DELETING, Reason: "another client deleted it", Adopted: true,
				CreateTime: at(0), ReclaimTime: at(5 * time.Minute),
			},
		},
	}
	got, _ := p.referee.machine.Status(function("f"))
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestStates shows the states that pods pass through on their way out.
func TestStates(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		event  string
		state  podmanagerv1.Pod_State
		reason string
	}{
		{"in use", "tick", podmanagerv1.Pod_STATE_READY, ""},
		{
			"found broken", "end 2 reset", podmanagerv1.Pod_STATE_STARTING,
			"an evaluation found it broken, and its health is being probed",
		},
		{"dead, in use", "see f-1 lost", podmanagerv1.Pod_STATE_FAILED, "the kubelet says lost"},
		{
			"deleted by others, in use", "see f-1 running deleting", podmanagerv1.Pod_STATE_DELETING,
			"another client deleted it",
		},
		{"stuck", "see f-1 stuck", podmanagerv1.Pod_STATE_STARTING, "the kubelet says stuck"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlayer(behaviour{})
			for _, event := range []string{"request 1 f", "request 2 f", "up f-1", test.event} {
				if _, err := p.play(event); err != nil {
					t.Fatal(err)
				}
			}
			status, _ := p.referee.machine.Status(function("f"))
			pod := status.GetPods()[0]
			if pod.GetState() != test.state || pod.GetReason() != test.reason {
				t.Errorf("state is %v, %q, want %v, %q", pod.GetState(), pod.GetReason(), test.state, test.reason)
			}
		})
	}
}

func TestLastFailureIsOver(t *testing.T) {
	t.Parallel()
	p := newPlayer(behaviour{})
	for _, event := range []string{"request 1 f", "see f-1 fatal", "gone f-1", "wait 1s", "request 2 f", "up f-1'"} {
		if _, err := p.play(event); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := p.referee.machine.Status(function("f"))
	if s.GetLastFailure() != "" || s.GetLastFailureTime() != nil {
		t.Errorf("the last failure is %q at %v, want none: the most recent attempt to have a pod did not fail",
			s.GetLastFailure(), s.GetLastFailureTime())
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	m := pool.New(newPlayer(behaviour{}).configured())
	if _, ok := m.Status(function("f")); ok {
		t.Error("there is a status of a function that is not known")
	}
	m.Handle(start, pool.LeaseRequested{Lease: 1, Function: function("f")})
	m.Handle(start, pool.LeaseRequested{Lease: 2, Function: function("g")})
	names := func(functions []pool.Function) []string {
		var names []string
		for _, f := range functions {
			names = append(names, f.Reference)
		}
		slices.Sort(names)
		return names
	}
	if diff := cmp.Diff([]string{"f", "g"}, names(m.Functions())); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}
}
