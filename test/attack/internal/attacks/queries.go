// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// unreadQueries fills the gateway's history with long image names. Then 40 callers query the whole history on 100
// streams each, and never read the answers.
var unreadQueries = Attack{
	Name: "4000 unread histories", Programs: []string{system.FunctionRunner, system.Gateway}, Short: runner,
	Run: func(ctx context.Context, t *Target) error {
		if err := t.fillHistory(ctx); err != nil {
			return err
		}
		all512 := []byte{2 << 3, 0x80, 4} // max: 512
		err := t.leaveUnread(ctx, historyPath, wire.Envelope(all512, false, len(all512)), 40, 100, true)
		if err != nil && ctx.Err() == nil {
			return nil // servers may close connections with too many unread answers
		}
		return err
	},
}

// fillHistory fills the gateway's history with evaluations of long, invalid image names.
func (t *Target) fillHistory(ctx context.Context) error {
	conn, err := t.connectTo()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	caller := evaluator.NewFunctionEvaluatorClient(conn)
	request := &evaluator.EvaluateFunctionRequest{Image: strings.Repeat("long/", 200) + ":", ResourceList: List("", "", 0)}
	for range 600 {
		_, err := caller.EvaluateFunction(ctx, request)
		if code := status.Code(err); code == codes.OK || code == codes.Unavailable {
			return fmt.Errorf("a name that is not valid is answered with %w", err)
		}
	}
	return nil
}
