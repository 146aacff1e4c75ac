// Package pause is an older name of [retry.Sleep].
package pause

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// For is [retry.Sleep].
func For(ctx context.Context, d time.Duration) bool { return retry.Sleep(ctx, d) }
