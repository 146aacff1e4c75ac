// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// loggedSecret evaluates a function that writes a caller's secret to stderr and fails. The secret must not appear
// in the program's log, because people other than the caller can read the log.
var loggedSecret = Attack{
	Name: "secrets in the log", Programs: evaluators,
	Run: func(ctx context.Context, t *Target) error {
		if err := t.mustFail(ctx, List("tell", secret, 0)); err != nil {
			return err
		}
		log, err := os.ReadFile(t.Log)
		if err != nil {
			return fmt.Errorf("read the program's log: %w", err)
		}
		if bytes.Contains(log, []byte(secret)) {
			return errors.New("the log has what a function wrote to stderr")
		}
		return nil
	},
}

// mustFail evaluates a list, and returns an error if the function does not fail.
func (t *Target) mustFail(ctx context.Context, list []byte) error {
	if _, err := t.evaluate(ctx, system.Hostile, list); status.Code(err) != codes.Internal {
		return fmt.Errorf("a function that fails is answered with %v", status.Convert(err))
	}
	return nil
}
