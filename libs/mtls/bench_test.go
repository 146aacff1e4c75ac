// SPDX-License-Identifier: Apache-2.0

package mtls_test

import (
	"slices"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
)

// BenchmarkCall measures a call on a warm connection, with and without mutual TLS. What a call costs
// besides is small here: in an evaluation the difference is the same, and the whole is larger.
func BenchmarkCall(b *testing.B) {
	authority := mtlstest.NewAuthority(b, time.Hour)
	secure := authority.Identity(b, caller).ClientOfSibling("server")
	clients := map[string]client{
		"plaintext": dial(b, "http://"+start(b, nil), nil),
		"mutualTLS": dial(b, "https://"+start(b, authority.Identity(b, server)), secure),
	}
	for name, size := range map[string]int{"1KiB": 1000, "100KiB": 100 << 10} {
		req := &evaluator.EvaluateFunctionRequest{ResourceList: make([]byte, size)}
		b.Run(name, func(b *testing.B) {
			took := map[string][]time.Duration{}
			for b.Loop() { // in turns, so that other load on the machine is the same for both
				for kind, c := range clients {
					begin := time.Now()
					if _, err := c.EvaluateFunction(b.Context(), req); err != nil {
						b.Fatal(err)
					}
					took[kind] = append(took[kind], time.Since(begin))
				}
			}
			for kind, all := range took {
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds()), kind+"-p50-µs")
			}
		})
	}
}
