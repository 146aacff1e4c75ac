// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// TestLeaseBeforeTheFirstList asks for a lease while it is not known yet which pods
// there are.
func TestLeaseBeforeTheFirstList(t *testing.T) {
	tests := []struct {
		name      string
		obstacle  error
		listAfter time.Duration // 0: never
		timeout   time.Duration // the caller's; 0: none
		takes     time.Duration // until the answer
		class     fault.Class
		text      string
		elsewhere bool
		reason    string
	}{
		{name: "soon", listAfter: time.Second, takes: 2 * time.Second, reason: "a second for the list, and one for the pod"},
		{
			name: "silence", takes: 10 * time.Second, class: fault.Unavailable, text: "have not been read", elsewhere: true,
			reason: "another replica may know them",
		},
		{
			name: "trouble", obstacle: fault.New(fault.Unavailable, "connection refused"), takes: 10 * time.Second,
			class: fault.Unavailable, text: "connection refused", elsewhere: true, reason: "it may pass, and the cause helps",
		},
		{
			name: "trouble that passes", obstacle: fault.New(fault.Unavailable, "connection refused"),
			listAfter: 3 * time.Second, takes: 4 * time.Second, reason: "no caller is rejected for what passes",
		},
		{
			name: "no rights", obstacle: fault.New(fault.Precondition, "pods is forbidden"),
			class: fault.Precondition, text: "pods is forbidden", reason: "no replica has other rights, and waiting gives none",
		},
		{
			name:     "trouble, little time",
			obstacle: fault.New(fault.Unavailable, "connection refused"), timeout: 5 * time.Second,
			takes: 4500 * time.Millisecond,
			class: fault.Unavailable, text: "connection refused", elsewhere: true,
			reason: "the cause comes while the caller still listens",
		},
		{
			name: "no time", timeout: time.Nanosecond, class: fault.Unavailable, text: "have not been read", elsewhere: true,
			reason: "each wait ends before its caller's",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				synced := make(chan struct{})
				m := startWith(t, &cluster{}, resolver{}, synced, tc.obstacle)
				if tc.listAfter > 0 {
					time.AfterFunc(tc.listAfter, func() { close(synced) })
				}
				ctx := t.Context()
				if tc.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.timeout)
					defer cancel()
				}
				begin := time.Now()
				var reported []string
				held, err := m.Lease(ctx, open("fn:v1"), func(w *lease.Waiting) { reported = append(reported, w.GetReason()) })
				if took := time.Since(begin); took != tc.takes {
					t.Errorf("answered after %s, want %s: %s", took, tc.takes, tc.reason)
				}
				waits := fault.Of(tc.obstacle) == fault.Unavailable
				if waits && (len(reported) == 0 || reported[0] != tc.obstacle.Error()) {
					t.Errorf("reported %q, want first what is in the way: a caller elsewhere may leave at any time", reported)
				}
				if tc.text == "" {
					if err != nil {
						t.Fatalf("%v: %s", err, tc.reason)
					}
					held.Finish(lease.Done, "")
					return
				}
				if err == nil || fault.Of(err) != tc.class || !strings.Contains(err.Error(), tc.text) ||
					lease.IsElsewhere(err) != tc.elsewhere {
					t.Errorf("got %v (%v), want %v and %q: %s", err, fault.Of(err), tc.class, tc.text, tc.reason)
				}
			})
		})
	}
}
