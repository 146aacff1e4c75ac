// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// decodeTimeout is the time limit for a program to accept or reject a list.
const decodeTimeout = 10 * time.Second

// tagsInput sends lists that contain a result with a hundred thousand different tags.
var tagsInput = Attack{
	Name: "tags in the input", Programs: evaluators, Short: runner,
	Run: func(ctx context.Context, t *Target) error {
		var list bytes.Buffer
		list.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n")
		list.WriteString("results:\n- message: odd\n  tags:\n")
		for i := range 100_000 {
			fmt.Fprintf(&list, "    k%d: v\n", i)
		}
		return runAll(4, func(int) error { return t.checkDecided(ctx, list.Bytes()) })
	},
}

// tagsOutput evaluates functions whose output contains a result with a hundred thousand different tags.
var tagsOutput = Attack{
	Name: "tags in an output", Programs: evaluators, Short: runner,
	Run: func(ctx context.Context, t *Target) error {
		return runAll(4, func(int) error { return t.checkDecided(ctx, List("tags", "100000", 0)) })
	},
}

// checkDecided checks that the program accepts or rejects a list in time. It returns nil if the program evaluates or
// rejects the list within decodeTimeout. Otherwise, it returns an error.
func (t *Target) checkDecided(ctx context.Context, list []byte) error {
	ctx, cancel := context.WithTimeout(ctx, decodeTimeout)
	defer cancel()
	_, err := t.evaluate(ctx, system.Hostile, list)
	if code := status.Code(err); code == codes.DeadlineExceeded || code == codes.Unavailable {
		return fmt.Errorf("a list of %d bytes had no verdict within %v: %w", len(list), decodeTimeout, err)
	}
	return nil
}
