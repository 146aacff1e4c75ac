// SPDX-License-Identifier: Apache-2.0

package sandboxeval

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// TestImagesThatAreNotThere checks the errors of images that are not opened. None is NotFound, on which
// callers go on to another runtime.
func TestImagesThatAreNotThere(t *testing.T) {
	for class, want := range map[fault.Class]fault.Class{
		fault.Precondition: fault.Precondition, fault.NotFound: fault.Unavailable, fault.Exhausted: fault.Exhausted,
		fault.DeadlineExceeded: fault.Unavailable, fault.Canceled: fault.Unavailable, fault.Denied: fault.Denied,
	} {
		err := notOpened(t.Context(), "fn:v1", time.Now(), "looking up the image", fault.New(class, "why"))
		if fault.Of(err) != want || !strings.HasPrefix(err.Error(), "unable to get the sandbox for fn:v1: why") {
			t.Errorf("%v became %v, %v, want %v", class, fault.Of(err), err, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		<-ctx.Done()
		const phase = "pulling the image, 3 of 7 layers, 12 of 80 MiB"
		err := notOpened(ctx, "fn:v1", start, phase, errors.New("any"))
		want := "function evaluation timed out for fn:v1: after 3s, " + phase + ": "
		if fault.Of(err) != fault.DeadlineExceeded || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	})
}
