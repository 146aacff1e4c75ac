// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// chaos cancels calls and cuts connections at random times. Every answer that a caller receives must match its request.
var chaos = Attack{
	Name: "random cancels and cuts", Programs: evaluators,
	Run: func(ctx context.Context, t *Target) error {
		ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
		defer cancel()
		err := runAll(16, func(caller int) error {
			conn, err := t.connectTo()
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			client := evaluator.NewFunctionEvaluatorClient(conn)
			for i := 0; ctx.Err() == nil; i++ {
				list := append(List("", "", rand.N(1000)), fmt.Sprintf("# %d-%d\n", caller, i)...)
				request := &evaluator.EvaluateFunctionRequest{Image: system.Hostile, ResourceList: list}
				if rand.N(3) == 0 {
					t.cutConnection(ctx, request)
					continue
				}
				if err := cancelAtRandom(ctx, client, request); err != nil {
					return err
				}
			}
			return nil
		})
		return errors.Join(err, t.noneLeft(context.WithoutCancel(ctx), "orphan"))
	},
}

// cancelAtRandom cancels an evaluation after a random time. If the program answers earlier, the answer must match the
// request.
func cancelAtRandom(
	ctx context.Context, client evaluator.FunctionEvaluatorClient, request *evaluator.EvaluateFunctionRequest,
) error {
	ctx, cancel := context.WithTimeout(ctx, rand.N(400*time.Millisecond))
	defer cancel()
	answer, err := client.EvaluateFunction(ctx, request)
	if err == nil && !bytes.Equal(answer.GetResourceList(), request.GetResourceList()) {
		return errors.New("a caller got the answer of another one")
	}
	return nil
}

// cutConnection sends a part of a request, and closes the connection after a random time.
func (t *Target) cutConnection(ctx context.Context, request *evaluator.EvaluateFunctionRequest) {
	ctx, cancel := context.WithTimeout(ctx, rand.N(100*time.Millisecond))
	defer cancel()
	message, err := proto.Marshal(request)
	if err != nil {
		return
	}
	conn, err := wire.Open(ctx, t.Address, 65535)
	if err != nil {
		return
	}
	if stream, err := conn.Request(evaluatePath); err == nil {
		_ = conn.Send(stream, wire.Envelope(message[:rand.N(len(message))], false, len(message)), rand.N(2) == 0)
	}
	<-ctx.Done()
}
