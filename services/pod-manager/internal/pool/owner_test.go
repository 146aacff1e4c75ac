// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestReplicaThatJoinsDeletesNothingAtOnce: the owners until now have not heard of it yet. A replica that is
// alone need not wait.
func TestReplicaThatJoinsDeletesNothingAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seen     bool // before it joins
		replicas int
		after    time.Duration
	}{
		"seen before":        {true, 2, 6 * time.Second},
		"seen after":         {false, 2, 6 * time.Second},
		"seen before, alone": {true, 1, 0},
		"seen after, alone":  {false, 1, 0},
	} {
		mine := pool.OwnersChanged{
			Owner: func(pool.Function) pool.Owner { return pool.Owner{Mine: true} }, Replicas: tc.replicas,
		}
		m, f, now := pool.New(newPlayer(behaviour{}).configured()), function("f"), start
		observe := func() { answerAll(m, now, m.Handle(now, observed("f-1", f, 1, start.Add(-2*time.Hour)))) }
		if tc.seen {
			observe()
		}
		m.Handle(now, mine)
		if !tc.seen {
			observe()
		}
		deleted := time.Duration(-1)
		for ; deleted < 0 && now.Sub(start) < time.Minute; now = now.Add(time.Second) {
			for _, a := range m.Handle(now, pool.Tick{}) {
				if _, ok := a.(pool.Delete); ok {
					deleted = now.Sub(start)
				}
			}
		}
		if deleted < 0 || (deleted >= 6*time.Second) != (tc.after > 0) {
			t.Errorf("%s: an expired pod is deleted after %v, want %v or soon after that", name, deleted, tc.after)
		}
	}
}

// TestPodThatIsAboutToExpireIsItsOwnersToLend: its owner deletes it, and may not learn in time that it is in use again.
// If the caller could not reach the owner, another replica lends it all the same.
func TestPodThatIsAboutToExpireIsItsOwnersToLend(t *testing.T) {
	t.Parallel()
	const owner = "10.0.0.2:9448"
	for name, tc := range map[string]struct {
		owner pool.Owner
		tried []string
		left  time.Duration
		lends bool
	}{
		"with time left":                {pool.Owner{Address: owner}, nil, 6 * time.Second, true},
		"about to expire":               {pool.Owner{Address: owner}, nil, 4 * time.Second, false},
		"expired":                       {pool.Owner{Address: owner}, nil, -time.Second, false},
		"expired, the owner is silent":  {pool.Owner{Address: owner}, []string{owner}, -time.Second, true},
		"expired, the owner is unknown": {pool.Owner{}, nil, -time.Second, true},
		"expired, of this replica":      {pool.Owner{Mine: true}, nil, -time.Second, true},
	} {
		m, f := pool.New(newPlayer(behaviour{}).configured()), function("f")
		m.Handle(start, pool.OwnersChanged{Owner: func(pool.Function) pool.Owner { return tc.owner }, Replicas: 2})
		answerAll(m, start, m.Handle(start, observed("f-1", f, 1, start.Add(tc.left-time.Hour))))
		var lent, turnedAway bool
		for _, a := range m.Handle(start, pool.LeaseRequested{Lease: 1, Function: f, Tried: tc.tried}) {
			switch a := a.(type) {
			case pool.Grant:
				lent = true
			case pool.Reject:
				turnedAway = a.Elsewhere && a.Owner == owner
			}
		}
		if lent != tc.lends || turnedAway == tc.lends {
			t.Errorf("%s: lent: %v, turned away to the owner: %v", name, lent, turnedAway)
		}
	}
}

// TestPodWhoseDeletionFailsIsAskedAgain: its deletion ends the open probe, and the pod serves on, because another
// replica has just used it.
func TestPodWhoseDeletionFailsIsAskedAgain(t *testing.T) {
	t.Parallel()
	m, f := pool.New(newPlayer(behaviour{}).configured()), function("f")
	expired := observed("f-1", f, 1, start.Add(-2*time.Hour))
	m.Handle(start, expired) // its probe is not answered yet
	deleted, asked := false, false
	for now := start; now.Before(start.Add(time.Minute)) && !asked; now = now.Add(time.Second) {
		for _, a := range m.Handle(now, pool.Tick{}) {
			switch a := a.(type) {
			case pool.Delete:
				deleted = true
				m.Handle(now, pool.DeleteFailed{Name: a.Name, UID: a.UID, Reason: "it has changed"})
				m.Handle(now, observed("f-1", f, 1, now))
			case pool.Probe:
				asked = deleted
			}
		}
	}
	if !deleted || !asked {
		t.Errorf("the pod was deleted: %v, and asked after that: %v", deleted, asked)
	}
}

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
				if _, ok := a.(pool.Delete); ok {
					replaced = now.Sub(former.Created)
				}
			}
		}
		if (replaced >= 0) != tc.replaced || tc.replaced && replaced < time.Minute {
			t.Errorf("%s: its pod of another template is replaced after %v (want: %v, after a minute)",
				name, replaced, tc.replaced)
		}
	}
}
