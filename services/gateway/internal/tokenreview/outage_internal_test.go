// SPDX-License-Identifier: Apache-2.0

package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
)

// TestFloodsOfTokensAreNotReviewed has a peer that invents a token for each of many requests, and another one whose
// token stays valid without another review.
func TestFloodsOfTokensAreNotReviewed(t *testing.T) {
	const seconds, perSecond = 20, 1000
	tel, _ := scrapetest.New(t)
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Telemetry: tel})
		if err != nil {
			t.Fatal(err)
		}
		reviews := map[string]int{}
		r.ask = func(_ context.Context, token string) (caller.Identity, error) {
			if reviews[token[:4]]++; token == "known" {
				return caller.Identity{ID: "u"}, nil
			}
			return caller.Identity{}, fault.New(fault.Denied, "the token is not valid")
		}
		for i := range seconds * perSecond {
			_, err := r.Identify(t.Context(), "192.0.2.1", fmt.Sprint("junk", i))
			if class := fault.Of(err); class != fault.Denied && class != fault.Exhausted {
				t.Fatalf("an invented token: %v", err)
			}
			if identity, err := r.Identify(t.Context(), "192.0.2.2", "known"); err != nil || identity.ID != "u" {
				t.Fatalf("a valid token during the flood: %+v, %v", identity, err)
			}
			<-time.After(time.Second / perSecond)
		}
		if most := reviewBurst + seconds*reviewsPerSecond; reviews["junk"] > most || reviews["know"] != 1 {
			t.Errorf("%v reviews, want at most %d of invented tokens", reviews, most)
		}
	})
}

// TestRatesAreBounded has more peers than are known.
func TestRatesAreBounded(t *testing.T) {
	r := rates{peers: make(map[string]*rate.Limiter)}
	for i := range 2 * maxRates {
		if !r.allow(strconv.Itoa(i)) {
			t.Fatalf("the first review of peer %d does not begin", i)
		}
	}
	if len(r.peers) > maxRates {
		t.Errorf("%d peers are known, want at most %d", len(r.peers), maxRates)
	}
}

// TestTheAPIFails has an API that cannot review tokens for a while: it says no word about any of them.
func TestTheAPIFails(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	log := new(logtest.Log)
	tel.Log = slog.New(slog.NewTextHandler(log, nil))
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Telemetry: tel})
		if err != nil {
			t.Fatal(err)
		}
		reviews, failing := 0, true
		r.ask = func(context.Context, string) (caller.Identity, error) {
			if reviews++; failing {
				return caller.Identity{}, errors.New("403 Forbidden: porch-system:gateway cannot create tokenreviews")
			}
			return caller.Identity{ID: "u"}, nil
		}
		identify := func(token string) error {
			_, err := r.Identify(t.Context(), "192.0.2.1", token)
			return err
		}
		for i := range 40 { // a second
			err := identify(fmt.Sprint("token", i%2))
			if fault.Of(err) != fault.Unavailable || strings.Contains(err.Error(), "porch-system") {
				t.Fatalf("got %v, want unavailable, without what the API said", err)
			}
			<-time.After(outageFor / 40)
		}
		if reviews != 2 {
			t.Errorf("%d reviews, want one for each token", reviews)
		}
		failing = false
		<-time.After(outageFor)
		for i := range 2 {
			if err := identify(fmt.Sprint("token", i)); err != nil {
				t.Errorf("after the API is back: %v", err)
			}
		}
	})
	if n := log.Count("tokens cannot be reviewed"); n != 1 || !strings.Contains(log.String(), "403 Forbidden") {
		t.Errorf("%d lines, want one with the cause:\n%s", n, log)
	}
	for _, want := range []string{
		`fn_token_reviews_total{outcome="error"} 2`, `fn_token_reviews_total{outcome="valid"} 2`,
	} {
		if !strings.Contains(scrape(), want) {
			t.Errorf("no %s in\n%s", want, scrape())
		}
	}
}

// TestInvalidTokensAreRemembered shows a token that is not valid again and again.
func TestInvalidTokensAreRemembered(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Telemetry: tel})
		if err != nil {
			t.Fatal(err)
		}
		reviews := 0
		r.ask = func(context.Context, string) (caller.Identity, error) {
			reviews++
			return caller.Identity{}, fault.New(fault.Denied, "the token is not valid")
		}
		for range 2 * 10 {
			if _, err := r.Identify(t.Context(), "192.0.2.1", "junk"); fault.Of(err) != fault.Denied {
				t.Errorf("got %v, want denied", err)
			}
			<-time.After(invalidFor / 10)
		}
		if reviews != 2 {
			t.Errorf("%d reviews in %v, want 2", reviews, 2*invalidFor)
		}
	})
	if want := `fn_token_reviews_total{outcome="invalid"} 2`; !strings.Contains(scrape(), want) {
		t.Errorf("no %s in\n%s", want, scrape())
	}
}

// TestCallersThatLeaveAreNoFailure has the only caller of a review leave.
func TestCallersThatLeaveAreNoFailure(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	log := new(logtest.Log)
	tel.Log = slog.New(slog.NewTextHandler(log, nil))
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Telemetry: tel})
		if err != nil {
			t.Fatal(err)
		}
		r.ask = func(ctx context.Context, _ string) (caller.Identity, error) {
			<-ctx.Done()
			return caller.Identity{}, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Identify(ctx, "192.0.2.1", "token"); err == nil {
			t.Error("no error")
		}
		synctest.Wait()
	})
	if want := `fn_token_reviews_total{outcome="abandoned"} 1`; !strings.Contains(scrape(), want) || log.String() != "" {
		t.Errorf("no %s, or a line in the log:\n%s%s", want, log, scrape())
	}
}
