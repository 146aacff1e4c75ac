// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

func Example() {
	err := fault.New(fault.Exhausted, "the queue is full")
	err = fmt.Errorf("evaluate set-namespace: %w", fault.WithRetryAfter(err, 2*time.Second))
	after, ok := fault.RetryAfter(err)
	fmt.Println(err)
	fmt.Println(fault.Of(err), after, ok)
	// Output:
	// evaluate set-namespace: the queue is full
	// exhausted 2s true
}
