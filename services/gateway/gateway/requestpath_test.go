// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// BenchmarkRequestPath has evaluations through a gateway, in a pod that returns what it gets, all in one process:
// what is measured is the path of a request and nothing of a function. Each of some callers calls again when it has
// its answer.
func BenchmarkRequestPath(b *testing.B) {
	for _, items := range []int{1, 200, 2000} {
		for _, callers := range []int{1, 8} {
			b.Run(fmt.Sprintf("items=%d/callers=%d", items, callers), func(b *testing.B) {
				address, _ := startRemembering(b, 6<<20)
				client := newCaller(b, address).client
				req := &evaluator.EvaluateFunctionRequest{Image: "example.com/other:v1", ResourceList: []byte(resourceList(items))}
				b.SetBytes(int64(len(req.GetResourceList())))
				b.ReportAllocs()
				for b.Loop() {
					var running sync.WaitGroup
					for range callers {
						running.Go(func() {
							if _, err := client.EvaluateFunction(b.Context(), req); err != nil {
								b.Error(err)
							}
						})
					}
					running.Wait()
				}
			})
		}
	}
}
