// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// known returns a memory that has known "key" for a while. It runs until the test ends.
func known(t *testing.T, s *service, age time.Duration) *remoteCache {
	t.Helper()
	m := newRemote(s)
	servetest.Go(t, m.Run)
	if _, err := m.Get(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	<-time.After(age)
	return m
}

// use asks as a lease does, and returns how long that took.
func use(t *testing.T, m *remoteCache) (said string, took time.Duration, err error) {
	t.Helper()
	began := time.Now()
	said, ok := m.Cached("key")
	if !ok {
		said, err = m.Get(t.Context(), "key")
	}
	return said, time.Since(began), err
}

func TestNoWaitForAServiceThatIsAway(t *testing.T) {
	tests := map[string]struct {
		reason string
		age    time.Duration // of what is known when the service goes
		takes  time.Duration // until a question has failed
		waits  int           // how many wait for that
		asked  int           // in the 100 seconds after
	}{
		"refused":        {"asked every 10 s, while no caller waits", 10 * time.Second, 1550 * time.Millisecond, 0, 9},
		"packets vanish": {"nor does a slower failure delay a caller", 10 * time.Second, 2 * time.Second, 0, 9},
		"silent":         {"one question at a time, until it has no more time", 10 * time.Second, time.Hour, 0, 3},
		"not used of late": {
			"much may have changed: the first waits to hear of it",
			10 * time.Minute,
			1550 * time.Millisecond,
			1,
			9,
		},
		"not used, silent": {"but not for long", 10 * time.Minute, time.Hour, 1, 3},
		"fails at once":    {"that is no reason to ask more often", 10 * time.Second, 0, 0, 10},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(service)
				m := known(t, s, tc.age)
				s.become(tc.takes, unavailable)
				waited := 0
				for range 100 {
					said, took, err := use(t, m)
					if said != "1" || err != nil {
						t.Fatalf("%q, %v, want what is known: %s", said, err, tc.reason)
					}
					if took > 0 {
						waited++
					}
					if took > 3*time.Second {
						t.Errorf("waited for %v: %s", took, tc.reason)
					}
					<-time.After(time.Second)
				}
				synctest.Wait()
				if asked := s.questions() - 1; waited != tc.waits || asked != tc.asked {
					t.Errorf(
						"%d of 100 waited, and the service was asked %d times, want %d and %d: %s",
						waited,
						asked,
						tc.waits,
						tc.asked,
						tc.reason,
					)
				}
			})
		})
	}
}

func TestServiceComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		m := known(t, s, 10*time.Second)
		s.become(0, unavailable)
		_, _, _ = use(t, m)
		synctest.Wait()
		<-time.After(40 * time.Minute)
		s.become(0, nil)
		if said, _, err := use(t, m); said != "3" || err != nil {
			t.Errorf("%q, %v, want a new answer: a failure long ago says nothing", said, err)
		}
	})
}
