// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

func ExampleBackoff() {
	backoff := retry.Backoff{First: time.Millisecond, Max: 4 * time.Millisecond}
	for attempt := 1; ; attempt++ {
		err := errors.New("not ready")
		if attempt == 3 {
			err = nil
		}
		fmt.Println("attempt", attempt, err)
		if err == nil || !backoff.Wait(context.Background()) {
			break
		}
	}
	// Output:
	// attempt 1 not ready
	// attempt 2 not ready
	// attempt 3 <nil>
}
