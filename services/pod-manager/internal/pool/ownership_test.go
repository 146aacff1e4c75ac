// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestOwnerReplacesPodsThatAFormerOwnerMade: during a rollout the former owner makes a pod from its template when the
// new one runs already. Of replicas without membership, none knows which template is the older one.
func TestOwnerReplacesPodsThatAFormerOwnerMade(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		owner    *pool.Owner // nil for no membership
		replaced bool
	}{
		"by its owner":            {&pool.Owner{Mine: true}, true},
		"by another replica":      {&pool.Owner{Address: "10.0.0.2:9448"}, false},
		"by one of several alone": {nil, false},
	} {
		m, f, now := pool.New(newPlayer(behaviour{}).configured()), function("f"), start
		m.Handle(now, pool.Tick{})
		if tc.owner != nil {
			m.Handle(now, pool.OwnersChanged{Owner: func(pool.Function) pool.Owner { return *tc.owner }, Replicas: 2})
		}
		now = now.Add(10 * time.Second)
		former := observed("f-1", f, 1, now)
		former.TemplateVersion = "v0"
		answerAll(m, now, m.Handle(now, former))
		replaced := time.Duration(-1)
		for lease := pool.LeaseID(1); replaced < 0 && lease <= 30; lease++ {
			now = now.Add(10 * time.Second)
			actions := m.Handle(now, pool.LeaseRequested{Lease: lease, Function: f})
			actions = append(actions, m.Handle(now, pool.LeaseEnded{Lease: lease})...)
			for _, a := range actions {
				if created, ok := a.(pool.Create); ok {
					answerAll(m, now, m.Handle(now, observed(created.Name, f, created.Slot, now)))
				}
				if _, ok := a.(pool.Delete); ok {
					replaced = now.Sub(former.Created)
				}
			}
		}
		if (replaced >= 0) != tc.replaced || (tc.replaced && replaced < time.Minute) {
			t.Errorf("%s: its pod of another template is replaced after %v (want: %v, after a minute)",
				name, replaced, tc.replaced)
		}
	}
}

// stage is a machine whose pods answer probes or not, and what the machine emitted.
type stage struct {
	*pool.Machine
	now     time.Time
	silent  bool
	actions []pool.Action
}

func newStage(config func(*player)) *stage {
	return &stage{Machine: pool.New(newPlayer(behaviour{config: config}).configured()), now: start}
}

// handle takes events, and answers the probes that follow.
func (s *stage) handle(events ...pool.Event) {
	for _, event := range events {
		for _, action := range s.Handle(s.now, event) {
			s.actions = append(s.actions, action)
			if a, ok := action.(pool.Probe); ok && s.silent {
				s.handle(pool.Unanswered{Name: a.Name, UID: a.UID, Question: a.Question})
			} else if ok {
				s.handle(pool.Probed{Name: a.Name, UID: a.UID, Question: a.Question})
			}
		}
	}
}

// pass lets seconds pass.
func (s *stage) pass(seconds int) {
	for range seconds {
		s.now = s.now.Add(time.Second)
		s.handle(pool.Tick{})
	}
}

// own has this replica own functions, or the other one of two.
func (s *stage) own(mine bool) {
	owner := pool.Owner{Mine: mine}
	if !mine {
		owner.Address = "10.0.0.2:9448"
	}
	s.handle(pool.OwnersChanged{Owner: func(pool.Function) pool.Owner { return owner }, Replicas: 2})
}

// last returns the last action of a kind, and whether there was one since the last call.
func last[A pool.Action](s *stage) (found A, ok bool) {
	for _, action := range s.actions {
		if a, is := action.(A); is {
			found, ok = a, true
		}
	}
	s.actions = nil
	return found, ok
}

// states are the states of a function's pods.
func (s *stage) states(f pool.Function) (states []podmanagerv1.Pod_State) {
	status, _ := s.Status(f)
	for _, p := range status.GetPods() {
		states = append(states, p.GetState())
	}
	return states
}

// tried is a request of a caller that did not reach the owner.
func tried(lease pool.LeaseID, f pool.Function) pool.LeaseRequested {
	return pool.LeaseRequested{Lease: lease, Function: f, Tried: []string{"10.0.0.2:9448"}}
}

// TestOnlyTheOwnerDrains has a replica that does not own a function see its pods expire and exceed the limit: it lends
// them to callers that do not reach the owner.
func TestOnlyTheOwnerDrains(t *testing.T) {
	t.Parallel()
	s, f := newStage(nil), function("f")
	s.own(false)
	for n := 1; n <= 2; n++ {
		expired := observed(fmt.Sprint("f-", n), f, n, s.now)
		expired.ReclaimAfter = s.now.Add(-time.Hour)
		s.handle(expired)
	}
	s.pass(120)
	both := []podmanagerv1.Pod_State{podmanagerv1.Pod_STATE_READY, podmanagerv1.Pod_STATE_READY}
	if got := s.states(f); !slices.Equal(got, both) {
		t.Errorf("the pods are in states %v, want them ready", got)
	}
	s.handle(tried(1, f))
	if _, lent := last[pool.Grant](s); !lent {
		t.Error("an expired pod of a silent owner is not lent")
	}
	s.own(true)
	s.handle(pool.LeaseEnded{Lease: 1})
	s.pass(60)
	if _, deleted := last[pool.Delete](s); !deleted {
		t.Error("the owner deletes none of its expired pods")
	}
}

// TestFormerOwnerForgetsItsDecisions has a pod drain when its function gets another owner, and that owner leave again.
func TestFormerOwnerForgetsItsDecisions(t *testing.T) {
	t.Parallel()
	s, f := newStage(nil), function("f")
	s.own(true)
	s.handle(observed("f-1", f, 1, s.now), pool.LeaseRequested{Lease: 1, Function: f})
	broken := observed("f-1", f, 1, s.now)
	broken.Problem = pool.Problem{Kind: pool.Lost, Reason: "evicted"}
	s.handle(broken)
	if got := s.states(f); !slices.Equal(got, []podmanagerv1.Pod_State{podmanagerv1.Pod_STATE_FAILED}) {
		t.Fatalf("a broken pod in use is in state %v", got)
	}
	s.own(false)
	got := s.states(f)
	if slices.Contains(got, podmanagerv1.Pod_STATE_FAILED) || slices.Contains(got, podmanagerv1.Pod_STATE_DRAINING) {
		t.Errorf("the former owner shows the pod in state %v, want it left to the new owner", got)
	}
	sound := observed("f-1", f, 1, s.now)
	s.handle(sound)
	s.own(true)
	if got := s.states(f); !slices.Equal(got, []podmanagerv1.Pod_State{podmanagerv1.Pod_STATE_READY}) {
		t.Errorf("adopted again, a sound pod is in state %v", got)
	}
}

// TestOwnerDoesNotInheritFailures has a replica fail to create a pod, and then own the function.
func TestOwnerDoesNotInheritFailures(t *testing.T) {
	t.Parallel()
	s, f := newStage(nil), function("f")
	s.own(false)
	s.handle(tried(1, f))
	first, _ := last[pool.Create](s)
	s.handle(pool.CreateFailed{Name: first.Name, Problem: pool.Problem{Kind: pool.Fatal, Reason: "no"}})
	s.own(true)
	s.handle(pool.LeaseRequested{Lease: 2, Function: f})
	if _, created := last[pool.Create](s); !created {
		t.Error("the new owner waits for the end of a backoff")
	}
}

// TestHandOverEndsProbes has a pod that does not answer get another owner.
func TestHandOverEndsProbes(t *testing.T) {
	t.Parallel()
	s, f := newStage(nil), function("f")
	s.silent = true
	s.own(true)
	starting := observed("f-1", f, 1, s.now)
	starting.Ready = false
	s.handle(starting)
	last[pool.Probe](s)
	s.own(false)
	if _, ended := last[pool.Unprobe](s); !ended {
		t.Error("the former owner continues to probe the pod")
	}
}

// TestOtherReplicasPodFollowsItsReadiness has a pod of another owner become ready, and lose its readiness.
func TestOtherReplicasPodFollowsItsReadiness(t *testing.T) {
	t.Parallel()
	s, f := newStage(nil), function("f")
	s.own(false)
	pod := observed("f-1", f, 1, s.now)
	s.handle(pod)
	pod.Ready = false
	s.handle(pod)
	s.silent = true // the node is gone
	s.handle(tried(1, f))
	if _, lent := last[pool.Grant](s); lent {
		t.Error("a pod that is not ready is lent")
	}
}

// TestUnreachableAPI has the Kubernetes API not answer. Callers of other processes turn to another replica, or get the
// reason if there is none. Callers of this process have no other replica, and wait until the API answers.
func TestUnreachableAPI(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replicas             int // 0 without membership
		inProcess, elsewhere bool
	}{
		"gateways":                     {2, false, true},
		"gateways of the only replica": {1, false, false},
		"gateways without membership":  {0, false, true}, // other replicas may exist
		"callers in this process":      {2, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := newStage(func(p *player) { p.config.InProcess = tc.inProcess }), function("f")
			if tc.replicas > 0 {
				owner := func(pool.Function) pool.Owner { return pool.Owner{Mine: true} }
				s.handle(pool.OwnersChanged{Owner: owner, Replicas: tc.replicas})
			}
			s.handle(pool.LeaseRequested{Lease: 1, Function: f})
			var waiting pool.Report
			for range 50 {
				actions := s.actions
				s.actions = nil
				for _, action := range actions {
					switch a := action.(type) {
					case pool.Create:
						s.handle(pool.CreateFailed{
							Name: a.Name, Problem: pool.Problem{Kind: pool.Held, Reason: "timeout", Unreachable: true},
						})
					case pool.Reject:
						if tc.inProcess || a.Elsewhere != tc.elsewhere || a.Class != fault.Unavailable {
							t.Fatalf("the caller gets %+v", a)
						}
						return
					case pool.Report:
						waiting = a
					}
				}
				s.pass(1)
			}
			if !tc.inProcess {
				t.Fatal("the caller does not get the reason")
			}
			if waiting.Waiting.Reason != "timeout" {
				t.Errorf("the caller waits for %+v, want the API's error", waiting)
			}
			s.pass(4)
			created, _ := last[pool.Create](s)
			s.handle(observed(created.Name, f, created.Slot, s.now))
			if _, granted := last[pool.Grant](s); !granted {
				t.Error("no lease is granted when the API answers again")
			}
		})
	}
}

// TestReplicaWithoutLeaseSendsWaitingCallersOn has a replica lose the Kubernetes API after a caller who came from the
// other replica began to wait. A caller of this process waits on.
func TestReplicaWithoutLeaseSendsWaitingCallersOn(t *testing.T) {
	t.Parallel()
	for name, inProcess := range map[string]bool{"gateway": false, "caller in this process": true} {
		s := newStage(func(p *player) { p.config.InProcess = inProcess })
		s.own(true)
		s.handle(tried(1, function("f")))
		other := pool.Owner{Address: "10.0.0.2:9448"}
		s.handle(pool.OwnersChanged{
			Owner: func(pool.Function) pool.Owner { return other }, Replicas: 1, Lost: "the API does not answer",
		})
		if a, rejected := last[pool.Reject](s); rejected == inProcess || (rejected && (!a.Elsewhere || a.Owner != "")) {
			t.Errorf("%s: rejected: %t (%+v), want %t, to any other replica", name, rejected, a, !inProcess)
		}
	}
}

// TestQuotaSendsCallersToReplicasWithIdlePods reaches a quota where all idle pods belong to another replica.
func TestQuotaSendsCallersToReplicasWithIdlePods(t *testing.T) {
	t.Parallel()
	s := newStage(nil)
	s.handle(pool.OwnersChanged{Replicas: 2, Owner: func(f pool.Function) pool.Owner {
		return pool.Owner{Mine: f.Reference == "g", Address: "10.0.0.2:9448"}
	}})
	refused := pool.CreateFailed{Name: "g-1", Problem: pool.Problem{Kind: pool.Full, Reason: "exceeded quota"}}
	pod := observed("f-1", function("f"), 1, s.now)
	pod.ReclaimAfter = s.now.Add(10 * time.Minute) // it was used now
	s.handle(pod, pool.LeaseRequested{Lease: 1, Function: function("g")}, refused)
	if a, rejected := last[pool.Reject](s); !rejected || !a.Elsewhere || !strings.Contains(a.Reason, "exceeded quota") {
		t.Errorf("the caller gets %+v, want it sent to the replica that owns the idle pod", a)
	}
	s.pass(10)
	s.handle(pool.LeaseRequested{Lease: 2, Function: function("g"), Tried: []string{"10.0.0.2:9448"}}, refused)
	if a, rejected := last[pool.Reject](s); rejected && a.Lease == 2 {
		t.Errorf("a caller that asked all replicas gets %+v, want it to wait", a)
	}
}

// TestQuotaInTheProcessOfItsCallers has callers that can ask no other replica.
func TestQuotaInTheProcessOfItsCallers(t *testing.T) {
	t.Parallel()
	s := newStage(func(p *player) { p.config.InProcess = true })
	s.own(true)
	s.handle(pool.LeaseRequested{Lease: 1, Function: function("g")},
		pool.CreateFailed{Name: "g-1", Problem: pool.Problem{Kind: pool.Full, Reason: "exceeded quota"}})
	s.pass(5)
	if a, rejected := last[pool.Reject](s); rejected {
		t.Errorf("the caller gets %+v, want it to wait", a)
	}
}

// TestMinimumServesUntilANewPodDoes has all new pods of a function with a minimum fail, for longer than an unused pod
// lives.
func TestMinimumServesUntilANewPodDoes(t *testing.T) {
	t.Parallel()
	s, f := newStage(nil), function("f")
	s.own(true)
	pod := observed("f-1", f, 1, s.now)
	pod.ReclaimAfter = s.now.Add(10 * time.Minute)
	s.handle(pod, pool.MinPodsSet{Function: f, Pods: 1})
	changed := newPlayer(behaviour{config: func(p *player) { p.config.Template = "v2" }})
	s.handle(pool.Configured{Config: changed.configured()})
	for range 20 * 60 {
		for _, action := range s.actions {
			switch a := action.(type) {
			case pool.Create:
				s.handle(pool.CreateFailed{Name: a.Name, Problem: pool.Problem{Kind: pool.Fatal, Reason: "no such class"}})
			case pool.Delete:
				t.Fatalf("after %s %s is deleted: %s", s.now.Sub(start), a.Name, a.Reason)
			}
		}
		s.actions = nil
		s.pass(1)
	}
	if got := s.states(f); len(got) == 0 || got[0] != podmanagerv1.Pod_STATE_READY {
		t.Errorf("the pods are in states %v, want the former one to serve", got)
	}
}

// TestReplicaNoticesLostNetworkWithoutCallers has the pods of one of two replicas stop answering, while no caller uses
// them.
func TestReplicaNoticesLostNetworkWithoutCallers(t *testing.T) {
	t.Parallel()
	s := newStage(nil)
	s.own(true)
	s.handle(observed("f-1", function("f"), 1, s.now), observed("g-1", function("g"), 1, s.now))
	s.pass(10)
	s.silent = true
	s.pass(15)
	if a, stoodDown := last[pool.StandDown](s); !stoodDown || a.Reason == "" {
		t.Error("the replica does not notice that it reaches no pod")
	}
	if got := s.states(function("f")); !slices.Equal(got, []podmanagerv1.Pod_State{podmanagerv1.Pod_STATE_FAILED}) {
		t.Errorf("a silent pod of its own is in state %v", got)
	}
}

// TestSilentPodOfAnotherReplicaIsItsOwners has a sampled pod of another owner be silent.
func TestSilentPodOfAnotherReplicaIsItsOwners(t *testing.T) {
	t.Parallel()
	s, f := newStage(nil), function("f")
	s.own(false)
	s.handle(observed("f-1", f, 1, s.now))
	s.silent = true
	s.pass(20)
	if got := s.states(f); !slices.Equal(got, []podmanagerv1.Pod_State{podmanagerv1.Pod_STATE_READY}) {
		t.Errorf("another owner's pod is in state %v, want it left to its owner", got)
	}
}

// TestOneSilentPodIsThePodsFault has one pod of one function hang.
func TestOneSilentPodIsThePodsFault(t *testing.T) {
	t.Parallel()
	s, f := newStage(nil), function("f")
	s.own(true)
	s.silent = true
	s.handle(observed("f-1", f, 1, s.now))
	s.pass(20)
	if a, stoodDown := last[pool.StandDown](s); stoodDown {
		t.Errorf("one silent pod makes the replica stand down: %s", a.Reason)
	}
}

// TestColdStartsContinueWhileAllPodsAreSilent: the only two pods hang. If no other replica can do better, this one
// continues to create pods.
func TestColdStartsContinueWhileAllPodsAreSilent(t *testing.T) {
	t.Parallel()
	alone := pool.Owner{Mine: true, Alone: true}
	for name, tc := range map[string]struct {
		owner              pool.Owner
		inProcess, created bool
	}{
		"all replicas stood down":        {pool.Owner{Mine: true}, false, true},
		"another replica is well":        {pool.Owner{Address: "10.0.0.2:9448"}, false, false},
		"without membership":             {alone, false, false},
		"without membership, in process": {alone, true, true},
	} {
		s := newStage(func(p *player) { p.config.InProcess = tc.inProcess })
		s.own(true)
		s.silent = true
		s.handle(observed("f-1", function("f"), 1, s.now), observed("g-1", function("g"), 1, s.now))
		s.pass(10)
		if a, stoodDown := last[pool.StandDown](s); !stoodDown || a.Reason == "" {
			t.Fatalf("%s: the replica does not stand down", name)
		}
		s.handle(pool.OwnersChanged{Owner: func(pool.Function) pool.Owner { return tc.owner }, Replicas: 2})
		s.handle(tried(1, function("h")))
		if _, created := last[pool.Create](s); created != tc.created {
			t.Errorf("%s: a pod is created: %v, want %v", name, created, tc.created)
		}
	}
}

// TestPodOnALostNodeIsNotLent has the node of an owner's pod not be ready any more, while the pod does not answer.
func TestPodOnALostNodeIsNotLent(t *testing.T) {
	t.Parallel()
	s, f := newStage(nil), function("f")
	s.own(true)
	pod := observed("f-1", f, 1, s.now)
	s.handle(pod)
	s.silent, pod.Ready = true, false
	s.handle(pod, pool.LeaseRequested{Lease: 1, Function: f})
	if a, lent := last[pool.Grant](s); lent {
		t.Errorf("the pod is lent: %+v", a)
	}
	s.silent = false
	s.pass(10)
	if a, created := last[pool.Create](s); !created {
		t.Errorf("no pod is created in its place: %+v", a)
	}
}

// TestOutdatedPodThatAnotherReplicaUsesIsReplaced has callers of one replica use the outdated pod of a function that
// another replica owns, as in the function-runner's process. The owner replaces the pod, also if it was never asked
// for the function.
func TestOutdatedPodThatAnotherReplicaUsesIsReplaced(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]bool{"asked before": true, "never asked": false} {
		s, f := newStage(nil), function("f")
		s.own(true)
		pod := observed("f-1", f, 1, s.now)
		pod.ReclaimAfter = s.now.Add(10 * time.Minute)
		s.handle(pod)
		if asked {
			s.handle(pool.LeaseRequested{Lease: 1, Function: f}, pool.LeaseEnded{Lease: 1})
		}
		s.pass(60)
		changed := newPlayer(behaviour{config: func(p *player) { p.config.Template = "v2" }})
		s.handle(pool.Configured{Config: changed.configured()})
		s.pass(60)
		if a, created := last[pool.Create](s); created {
			t.Fatalf("%s: %s is created although the function has no callers", name, a.Name)
		}
		unused := s.Counts().Outdated
		pod.ReclaimAfter = s.now.Add(10 * time.Minute) // another replica extends it
		s.handle(pod)
		if used := s.Counts().Outdated; unused != 0 || used != 1 {
			t.Errorf("%s: %d outdated pods wait for others while the function is not used, %d once it is, want 0 and 1",
				name, unused, used)
		}
		a, created := last[pool.Create](s)
		if !created {
			t.Fatalf("%s: no new pod is created", name)
		}
		current := observed(a.Name, f, a.Slot, s.now)
		current.TemplateVersion = "v2"
		s.handle(current)
		if a, deleted := last[pool.Delete](s); !deleted || a.Name != "f-1" {
			t.Errorf("%s: the outdated pod is not deleted when the new one is ready: %+v", name, a)
		}
	}
}

// TestQuotaInTheProcessOfItsCallersEvictsForeignPods has all idle pods belong to another replica, whose callers use
// all but one of them.
func TestQuotaInTheProcessOfItsCallersEvictsForeignPods(t *testing.T) {
	t.Parallel()
	s := newStage(func(p *player) { p.config.InProcess = true })
	s.handle(pool.OwnersChanged{Replicas: 2, Owner: func(f pool.Function) pool.Owner {
		return pool.Owner{Mine: f.Reference == "g"}
	}})
	used, unused := observed("used-1", function("used"), 1, s.now), observed("unused-1", function("unused"), 1, s.now)
	unused.ReclaimAfter = s.now.Add(8 * time.Minute) // two minutes ago, and its time to live is ten
	used.ReclaimAfter = s.now.Add(10 * time.Minute)
	s.handle(used, unused, pool.LeaseRequested{Lease: 1, Function: function("g")},
		pool.CreateFailed{Name: "g-1", Problem: pool.Problem{Kind: pool.Full, Reason: "exceeded quota"}})
	if a, deleted := last[pool.Delete](s); !deleted || a.Name != "unused-1" || !a.Foreign {
		t.Errorf("%+v is deleted, want the pod that the other replica has not used for two minutes", a)
	}
	s.handle(pool.PodGone{Name: "unused-1", UID: "unused-1"},
		pool.CreateFailed{Name: "g-1", Problem: pool.Problem{Kind: pool.Full, Reason: "exceeded quota"}})
	if a, deleted := last[pool.Delete](s); deleted {
		t.Errorf("%+v is deleted, which the other replica uses", a)
	}
}

// TestPodsThatOthersDeleteMakeNoRoom has a pod of another owner be broken, which only that owner deletes: it does not
// keep an idle pod from making way.
func TestPodsThatOthersDeleteMakeNoRoom(t *testing.T) {
	t.Parallel()
	s, g := newStage(nil), function("g")
	s.handle(pool.OwnersChanged{Replicas: 2, Owner: func(f pool.Function) pool.Owner {
		return pool.Owner{Mine: f.Reference != "broken"}
	}})
	broken := observed("broken-1", function("broken"), 1, s.now)
	broken.Problem = pool.Problem{Kind: pool.Lost, Reason: "evicted"}
	s.handle(broken, observed("idle-1", function("idle"), 1, s.now), pool.LeaseRequested{Lease: 1, Function: g},
		pool.CreateFailed{Name: "g-1", Problem: pool.Problem{Kind: pool.Full, Reason: "exceeded quota"}})
	if a, deleted := last[pool.Delete](s); !deleted || a.Name != "idle-1" {
		t.Errorf("%+v is deleted, want the idle pod", a)
	}
}

// TestForeignPodsAreTheLastResort has gateways' callers want a pod at a quota while all idle pods belong to another
// owner: the caller is sent to that owner. A caller who asked all replicas waits, since a replica that cannot reach the
// Kubernetes API does not write that it uses a pod. Then the pod is deleted if it is as it was seen.
func TestForeignPodsAreTheLastResort(t *testing.T) {
	t.Parallel()
	s, g := newStage(nil), function("g")
	s.handle(pool.OwnersChanged{Replicas: 2, Owner: func(f pool.Function) pool.Owner {
		return pool.Owner{Mine: f == g, Address: map[bool]string{false: "10.0.0.2:9448"}[f == g]}
	}})
	unused := observed("unused-1", function("unused"), 1, s.now)
	unused.ResourceVersion = "7"
	unused.ReclaimAfter = s.now.Add(8 * time.Minute)
	full := pool.Problem{Kind: pool.Full, Reason: "exceeded quota"}
	s.handle(unused, pool.LeaseRequested{Lease: 1, Function: g}, pool.CreateFailed{Name: "g-1", Problem: full})
	if a, sent := last[pool.Reject](s); !sent || !a.Elsewhere {
		t.Errorf("the caller gets %+v, want to be sent to the other replica", a)
	}
	s.handle(tried(2, g))
	waited := 0
	for ; waited < 60; waited++ {
		if a, created := last[pool.Create](s); created {
			s.handle(pool.CreateFailed{Name: a.Name, Problem: full})
		}
		if a, deleted := last[pool.Delete](s); deleted {
			if a.Name != "unused-1" || !a.Foreign || a.Version != unused.ResourceVersion || a.Version == "" {
				t.Errorf("%+v is deleted, want the unused pod as it was seen", a)
			}
			break
		}
		s.pass(1)
	}
	if waited < 20 || waited > 30 {
		t.Errorf("a pod of another owner is deleted after %d s of waiting, want it after 20 s", waited)
	}
	s.handle(pool.DeleteFailed{Name: "unused-1", UID: unused.UID})
	again := false
	for range 10 {
		s.pass(1)
		_, deleted := last[pool.Delete](s)
		again = again || deleted
	}
	if !again {
		t.Error("a deletion that failed is not tried again")
	}
	unused.ResourceVersion = "9"
	unused.ReclaimAfter = s.now.Add(10 * time.Minute) // used by then
	s.handle(pool.DeleteFailed{Name: "unused-1", UID: unused.UID}, unused,
		tried(3, function("unused")))
	if a, granted := last[pool.Grant](s); !granted || a.Pod != "unused-1" {
		t.Errorf("the pod that another replica uses is not granted: %+v", a)
	}
}
