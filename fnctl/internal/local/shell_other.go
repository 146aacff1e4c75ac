// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package local

import (
	"context"
	"errors"
	"time"
)

// Shell calls each with an error: it needs a shell of Unix.
func Shell(_ context.Context, _ []string, _ string, _ []byte, _ time.Duration, each func(error) bool) {
	each(errors.New("a loop in a shell needs Linux or macOS"))
}
