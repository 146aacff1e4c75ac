// SPDX-License-Identifier: Apache-2.0

package telemetry

import sdkmetric "go.opentelemetry.io/otel/sdk/metric"

// Seconds contains the bounds of histogram buckets for durations, from a millisecond to the longest evaluation.
var Seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// Bytes contains the bounds of histogram buckets for sizes, from a small resource list to the maximum message.
var Bytes = []float64{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20, 6 << 20, 16 << 20}

// rpcBuckets returns a view that sets the histogram buckets for RPC durations. OpenTelemetry's default buckets end
// at 10 seconds, but evaluations may last minutes.
func rpcBuckets() sdkmetric.View {
	return sdkmetric.NewView(sdkmetric.Instrument{Name: "rpc.*.duration", Unit: "s"},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: Seconds}})
}
