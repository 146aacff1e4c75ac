// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/admission"
)

// TestAFunctionThatHangsMakesNoOtherWait has 60 requests of a function that hangs, and
// another function at a steady rate: it never waits longer than one of its own runs,
// whichever slots become free meanwhile.
func TestAFunctionThatHangsMakesNoOtherWait(t *testing.T) {
	const hangs, takes = 7 * time.Second, 100 * time.Millisecond
	tests := map[string]func(i int) string{
		"of one caller":   func(int) string { return "porch" },
		"of many callers": func(i int) string { return fmt.Sprint("caller ", i%20) },
		"unknown callers": func(int) string { return "" },
	}
	for name, caller := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := admission.New(admission.Limits{Concurrent: 8, Reserve: 1, Queue: 100})
				for i := range 60 {
					go run(t, g, claim("hangs", caller(i)), hangs)
					synctest.Wait()
				}
				for i := range 1000 {
					go func() {
						if waited := run(t, g, claim("good", caller(i)), takes); waited > takes {
							t.Errorf("request %d waited for %v, and one takes %v", i, waited, takes)
						}
					}()
					time.Sleep(takes * 9 / 10) //nolint:forbidigo // virtual time
					if i%2 == 0 {
						time.Sleep(takes / 2) //nolint:forbidigo // virtual time
					}
				}
				time.Sleep(time.Hour) //nolint:forbidigo // virtual time
				synctest.Wait()
				wantCounts(t, g, 0, 0)
			})
		})
	}
}

// run has one request be evaluated, and returns how long it waited.
func run(t *testing.T, g *admission.Gate, claim admission.Claim, takes time.Duration) time.Duration {
	start := time.Now()
	release := acquire(t, g, claim)
	defer release()
	waited := time.Since(start)
	time.Sleep(takes) //nolint:forbidigo // virtual time
	return waited
}
