// SPDX-License-Identifier: Apache-2.0

package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
)

// TestFloodsForgetNoValidToken has peers invent tokens while a caller with a valid one is silent. The API fails then.
func TestFloodsForgetNoValidToken(t *testing.T) {
	const peers, perPeer = 10, 2000
	tel, _ := scrapetest.New(t)
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Telemetry: tel})
		if err != nil {
			t.Fatal(err)
		}
		var failing atomic.Bool
		r.ask = func(_ context.Context, token string) (caller.Identity, error) {
			switch {
			case failing.Load():
				return caller.Identity{}, errors.New("away")
			case token == "known":
				return caller.Identity{ID: "u"}, nil
			}
			return caller.Identity{}, fault.New(fault.Denied, "the token is not valid")
		}
		known := func() error {
			_, err := r.Identify(t.Context(), "192.0.2.1", "known")
			return err
		}
		if err := known(); err != nil {
			t.Fatal(err)
		}
		for i := range perPeer {
			for peer := range peers {
				if _, err := r.Identify(t.Context(), fmt.Sprint("198.51.100.", peer), fmt.Sprint(peer, "-", i)); err == nil {
					t.Fatal("an invented token is accepted")
				}
			}
			<-time.After(10 * time.Millisecond)
		}
		failing.Store(true)
		if err := known(); err != nil {
			t.Errorf("a token that was valid %v ago: %v", 10*time.Millisecond*perPeer, err)
		}
	})
}

// TestFailuresAreBounded remembers more of them than there may be, and each for its time.
func TestFailuresAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailures()
		for i := range 2 * maxFailures {
			f.remember(key{byte(i), byte(i >> 8)}, errors.New("no"), time.Minute)
		}
		last := key{0xff, byte((2*maxFailures - 1) >> 8)}
		if n := f.recent.Len(); n != maxFailures || f.of(last) == nil || f.of(key{}) != nil {
			t.Errorf("%d failures, the last one %v, the first one %v", n, f.of(last), f.of(key{}))
		}
		<-time.After(time.Minute)
		if err := f.of(last); err != nil {
			t.Errorf("after its time: %v", err)
		}
	})
}

// TestRevokedTokensAreRejectedByTheirRefresh has a token in use that the API accepts no more.
func TestRevokedTokensAreRejectedByTheirRefresh(t *testing.T) {
	tel, _ := scrapetest.New(t)
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Telemetry: tel})
		if err != nil {
			t.Fatal(err)
		}
		var revoked atomic.Bool
		r.ask = func(context.Context, string) (caller.Identity, error) {
			if revoked.Load() {
				return caller.Identity{}, fault.New(fault.Denied, "the token is not valid")
			}
			return caller.Identity{ID: "u"}, nil
		}
		for range 31 {
			if _, err := r.Identify(t.Context(), "192.0.2.1", "t"); err != nil {
				t.Fatal(err)
			}
			revoked.Store(true)
			<-time.After(time.Second)
		}
		if _, err := r.Identify(t.Context(), "192.0.2.1", "t"); fault.Of(err) != fault.Denied {
			t.Errorf("after the refresh: %v, want that it is not valid", err)
		}
	})
}
