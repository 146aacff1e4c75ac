// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestImagesOfForgottenFunctionsAreForgotten has an image of a function with a pool, and one of a
// function whose pool is gone.
func TestImagesOfForgottenFunctionsAreForgotten(t *testing.T) {
	settings := Settings{Defaults: pool.Limits{MaxPods: 1, MaxQueue: 1, ReadyTimeout: time.Minute}}
	l := newLoop(Config{Settings: settings}, new(metrics))
	with := pool.Function{Reference: "with", Digest: "sha256:1"}
	without := pool.Function{Reference: "without", Digest: "sha256:2"}
	l.machine.Handle(time.Now(), pool.LeaseRequested{Lease: 1, Function: with})
	l.images[with] = podspec.Function{Reference: "with"}
	l.images[without] = podspec.Function{Reference: "without"}
	for range forgetTicks {
		l.countPods()
	}
	if _, kept := l.images[with]; !kept || len(l.images) != 1 {
		t.Errorf("the images are %v, want that of the function with a pool", l.images)
	}
}
