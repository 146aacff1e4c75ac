// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// softEviction has the kubelet report that the node is out of memory, which it always is by this threshold. It would
// begin to evict pods after the grace period.
const softEviction = `
evictionSoft: { memory.available: 99% }
evictionSoftGracePeriod: { memory.available: 1h }
`

// memoryPressure has the node report that it is out of memory, and callers ask for a function without a pod. What is
// simulated is only how much memory there is: condition and taint are Kubernetes' own. The incident ends when the
// kubelet has its former threshold.
func memoryPressure(ctx context.Context, t *testing.T, at place) {
	file := filepath.Join(filepath.Dir(s.Bed.RuntimeRegistries), "kubelet.yaml")
	former, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return
	}
	configure := func(ctx context.Context, content []byte) {
		err := os.WriteFile(file, content, 0o600)
		if err == nil {
			err = s.Bed.Component("kubelet").Restart(ctx)
		}
		if err != nil {
			t.Errorf("configure the kubelet: %v", err)
		}
	}
	configure(ctx, append(former[:len(former):len(former)], softEviction...))
	defer configure(context.WithoutCancel(ctx), former)
	conn, image := at.caller(t), minor(t)
	atOnce(ctx, 4, func(int, int) {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if suite.SetNamespace(limited, conn, image) == nil {
			wait(limited, time.Second) // the taint is not there yet, or the pod was there before
		}
	})
}
