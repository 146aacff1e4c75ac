// SPDX-License-Identifier: Apache-2.0

package mtls

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
)

// TestExpiryIsReportedAnHourBefore follows a certificate of a day, whose issuer expires earlier.
func TestExpiryIsReportedAnHourBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		log := new(logtest.Log)
		i := &Identity{directory: "/tls", log: slog.New(slog.NewTextHandler(log, nil)), told: map[string]time.Time{}}
		i.current.Store(&material{expiries: []expiry{
			newExpiry("certificate", now, now.Add(24*time.Hour)), newExpiry("issuer", now, now.Add(10*time.Hour)),
		}})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { i.warnOfExpiries(ctx) })

		<-time.After(9*time.Hour - 2*time.Second)
		synctest.Wait()
		if got := i.Details(); len(got) > 0 || log.String() != "" {
			t.Errorf("more than an hour before: details %q, log %q", got, log)
		}
		<-time.After(4 * time.Second)
		synctest.Wait()
		const line = "a certificate expires soon and was not replaced"
		if got := i.Details(); len(got) != 1 || !strings.Contains(got[0], "the issuer in /tls expires at ") {
			t.Errorf("an hour before: details %q", got)
		}
		<-time.After(time.Minute)
		if n := log.Count(line); n != 1 || !strings.Contains(log.String(), "what=issuer") {
			t.Errorf("%d lines, want one:\n%s", n, log)
		}

		// The issuer is replaced, and the certificate with it.
		i.current.Store(&material{expiries: []expiry{newExpiry("certificate", now, now.Add(48*time.Hour))}})
		<-time.After(time.Minute)
		if got := i.Details(); len(got) > 0 || log.Count(line) != 1 {
			t.Errorf("after it was replaced: details %q, log %q", got, log)
		}
		stop()
		running.Wait()
	})
}

// TestShortLivesAreReportedInTheirLastQuarter has a certificate that is never an hour from its end.
func TestShortLivesAreReportedInTheirLastQuarter(t *testing.T) {
	begin := time.Now()
	if e := newExpiry("certificate", begin, begin.Add(time.Minute)); !e.warn.Equal(begin.Add(45 * time.Second)) {
		t.Errorf("reported %v after the beginning of a minute, want 45s", e.warn.Sub(begin))
	}
}
