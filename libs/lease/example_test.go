// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
)

func ExampleManager() {
	var manager lease.Manager = leasetest.NewManager(
		func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
			return &lease.Granted{Pod: "fn-1", Address: "10.0.0.7:9446"}, nil
		})
	ctx := context.Background()
	granted, err := manager.Lease(ctx, &lease.Open{Image: "ghcr.io/org/fn:v1"}, func(w *lease.Waiting) {
		fmt.Println("waiting:", w.GetReason())
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("evaluate in", granted.Granted().GetPod(), "at", granted.Granted().GetAddress())
	granted.Finish(lease.Done, "")
	// Output: evaluate in fn-1 at 10.0.0.7:9446
}
