// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// TestLimit has callers with deadlines before and after the limit, and without one.
func TestTimeLimit(t *testing.T) {
	tests := map[string]struct {
		limit, caller time.Duration // zero for none
		want          time.Duration
		passed        bool // the limit, and not the caller's deadline
		reason        string
	}{
		"no deadline":      {5 * time.Minute, 0, 5 * time.Minute, true, "a caller without a deadline gets one"},
		"later deadline":   {5 * time.Minute, time.Hour, 5 * time.Minute, true, "a long one is shortened"},
		"shorter deadline": {5 * time.Minute, time.Second, time.Second, false, "the caller's own comes first"},
		"no limit":         {0, time.Hour, time.Hour, false, "the zero limit bounds nothing"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				caller, cancel := context.WithCancel(t.Context())
				if tc.caller > 0 {
					caller, cancel = context.WithTimeout(t.Context(), tc.caller)
				}
				defer cancel()
				ctx, cancel := function.NewTimeLimit(tc.limit, "FNR_SOME_TIME").Context(caller)
				defer cancel()
				<-ctx.Done()
				if took := time.Since(begin); took != tc.want {
					t.Errorf("it ends after %v, want %v: %s", took, tc.want, tc.reason)
				}
				err := function.ContextErr(ctx)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("its error is %v, want a deadline", err)
				}
				if named := strings.Contains(err.Error(), "raise FNR_SOME_TIME"); named != tc.passed {
					t.Errorf("its error is %q: it names the setting: %t, want %t: %s", err, named, tc.passed, tc.reason)
				}
			})
		})
	}
}
