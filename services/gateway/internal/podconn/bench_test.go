// SPDX-License-Identifier: Apache-2.0

package podconn_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/podconn"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/testpod"
)

// BenchmarkTransport compares warm connections to pods with and without TLS, for resource lists of several sizes.
// docs/performance.md contains its results.
func BenchmarkTransport(b *testing.B) {
	authority := mtlstest.NewAuthority(b, time.Hour)
	known := authority.Identity(b, gateway)
	plain := podconn.Pod{UID: "plain", Address: testpod.Serve(b, 1<<23, echo)}
	secure := podconn.Pod{UID: "secure", Address: secured(b, authority), ID: podID, Secret: secret}
	for _, size := range []struct {
		name  string
		bytes int
	}{{"1KiB", 1 << 10}, {"200KiB", 200 << 10}, {"2MiB", 2 << 20}} {
		for name, pod := range map[string]podconn.Pod{"plaintext": plain, "tls": secure} {
			b.Run(size.name+"/"+name, func(b *testing.B) {
				pool := newPoolOf(b, podconn.Config{Idle: time.Minute, Max: 10, MaxMessageBytes: 1 << 23, Identity: known})
				conn := get(b, pool, pod)
				defer conn.Release(false)
				req := &evaluator.EvaluateFunctionRequest{ResourceList: bytes.Repeat([]byte("x"), size.bytes)}
				if err := conn.Connect(b.Context()); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := conn.EvaluateFunction(b.Context(), req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
