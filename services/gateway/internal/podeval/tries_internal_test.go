// SPDX-License-Identifier: Apache-2.0

package podeval

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

func TestTriesThatCount(t *testing.T) {
	slow := &brokenPodError{cause: fmt.Errorf("no connection: %w", os.ErrDeadlineExceeded), notCalled: true}
	refuses := &brokenPodError{cause: errors.New("connection refused"), notCalled: true}
	unknown := &brokenPodError{cause: &net.DNSError{Err: "server misbehaving"}, notCalled: true}
	breaks := &brokenPodError{cause: errors.New("EOF")}
	on := func(pod string, err *brokenPodError) *brokenPodError {
		return &brokenPodError{pod: pod, cause: err.cause, notCalled: err.notCalled}
	}
	tests := map[string]struct {
		reason   string
		attempts []*brokenPodError
		endless  bool
		counted  int
		text     string
	}{
		"slow to connect": {
			"a busy node slows down connections to healthy pods",
			[]*brokenPodError{on("a", slow), on("b", slow), on("c", slow)},
			false, 0,
			" (3 pods broke one after the other: a, b, c)",
		},
		"refused": {
			"another pod may be there",
			[]*brokenPodError{on("a", refuses), on("b", refuses)},
			false, 2,
			" (2 pods broke one after the other: a, b)",
		},
		"unknown name": {
			"name servers are to blame, not the pod",
			[]*brokenPodError{on("a", unknown), on("a", unknown)},
			false, 0,
			" (tried 2 times)",
		},
		"refused again": {
			"the pod-manager has asked it",
			[]*brokenPodError{on("a", refuses), on("a", refuses)},
			false, 1,
			" (tried 2 times on this pod)",
		},
		"breaks again": {
			"the evaluation may break it",
			[]*brokenPodError{on("a", breaks), on("a", breaks)},
			false, 2,
			" (tried 2 times on this pod)",
		},
		"two pods": {
			"each is named once",
			[]*brokenPodError{on("a", breaks), on("b", breaks), on("a", slow)},
			false, 2,
			" (tried 3 times on 2 pods: a, b)",
		},
		"no deadline": {
			"no caller waits for ever",
			[]*brokenPodError{on("a", slow), on("a", refuses)},
			true, 2,
			" (tried 2 times on this pod)",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if !tc.endless {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Minute)
				defer cancel()
			}
			var tried tries
			for _, broken := range tc.attempts {
				tried.addAttempt(ctx, evaluation.Request{}, broken)
			}
			if tried.counted != tc.counted || tried.describePods() != tc.text {
				t.Errorf("%d count%s, want %d%s: %s", tried.counted, tried.describePods(), tc.counted, tc.text, tc.reason)
			}
		})
	}
}
