// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
)

// unknownFields sends small lists with large unknown fields. The program must count these fields towards its memory
// budget for requests. The functions wait for two seconds, so that requests accumulate. They do not wait in a
// wrapper-server, the server in function pods. This is because the pod-manager permits only few concurrent evaluations
// in a pod, and waiting functions would occupy them (see [hanging]).
var unknownFields = Attack{
	Name: "large unknown fields", Programs: evaluators,
	Run: func(ctx context.Context, t *Target) error {
		const imageField, listField = 2, 1
		var message []byte
		add := func(field protowire.Number, content []byte) {
			message = protowire.AppendTag(message, field, protowire.BytesType)
			message = protowire.AppendBytes(message, content)
		}
		wait := "2s"
		if t.Program.Name == system.WrapperServer {
			wait = "0s"
		}
		add(listField, List("wait", wait, 0))
		add(imageField, []byte("attack.test/fns/hostile:v1"))
		add(unknownField, make([]byte, 5<<20))
		ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
		defer cancel() // the program has read all requests by then; answers do not matter
		t.postRepeatedly(ctx, evaluatePath, wire.Envelope(message, false, len(message)), 150)
		return nil
	},
}
