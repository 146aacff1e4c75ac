// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// unreadAnswers evaluates lists of 3 MB for 22 callers that never read the answers.
var unreadAnswers = Attack{
	Name: "22 unread answers", Programs: evaluators, Short: runner,
	Run: func(ctx context.Context, t *Target) error {
		request := &evaluator.EvaluateFunctionRequest{Image: system.Hostile, ResourceList: List("", "", 3<<20)}
		message, err := proto.Marshal(request)
		if err != nil {
			return err
		}
		return t.leaveUnread(ctx, evaluatePath, wire.Envelope(message, false, len(message)), 22, 1, true)
	},
}

// unreadReflection opens 40 connections, sends reflection requests on two streams of each, and never reads the answers.
var unreadReflection = Attack{
	Name: "40 unread reflections", Programs: every,
	Run: func(ctx context.Context, t *Target) error {
		listServices := []byte{7<<3 | 2, 0}
		body := append(wire.Envelope(listServices, false, len(listServices)), make([]byte, 8<<20)...)
		return t.leaveUnread(ctx, reflectionPath, body, 40, 2, false)
	},
}

// leaveUnread sends body to path on all streams of all connections, and never reads the answers.
func (t *Target) leaveUnread(ctx context.Context, path string, body []byte, connections, streams int, end bool) error {
	ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
	defer cancel()
	return runAll(connections, func(int) error {
		if conn, err := wire.Open(ctx, t.Address, 0); err == nil { // the server may refuse connections
			_ = runAll(streams, func(int) error {
				id, err := conn.Request(path)
				if err != nil {
					return err
				}
				return conn.Send(id, body, end)
			})
		}
		<-ctx.Done()
		return nil
	})
}
