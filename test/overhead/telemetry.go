// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/test/internal/packagelist"
)

// telemetryLimit is the maximum factor by which full telemetry may increase the median latency.
const telemetryLimit = 1.03

const telemetryHeader = "items callers way     samples        p50       mean        cpu   p50/off  mean/off " +
	"  cpu/off  limit"

// telemetry compares gateways with and without full telemetry. It fails if full telemetry increases the median latency
// by more than telemetryLimit. Full telemetry traces, exports and logs each evaluation, and serves metrics every
// second.
func (b *bench) telemetry(ctx context.Context) error {
	ways, stop, err := b.telemetryWays(ctx)
	defer stop()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(b.out, telemetryHeader); err != nil {
		return err
	}
	list, exceeded := packagelist.New(1), false
	for _, callers := range []int{1, 8} {
		all, err := b.measure(ctx, ways, list, callers)
		if err != nil {
			return err
		}
		held, err := reportTelemetry(b.out, callers, ways, all)
		if err != nil {
			return err
		}
		exceeded = exceeded || !held
	}
	if exceeded {
		return limitError(fmt.Sprintf("telemetry takes the median to more than %v times that without it", telemetryLimit))
	}
	return nil
}

// reportTelemetry prints a row for each gateway, and reports whether the latency stays within telemetryLimit. Each row
// contains the processor time, which is more reliable than the median on a busy machine. The processor time excludes
// the process that receives the telemetry, because this process runs on another machine in production.
func reportTelemetry(out io.Writer, callers int, ways []way, all map[string]times) (held bool, err error) {
	base := all[ways[0].name].summary()
	for _, w := range ways {
		of := all[w.name].summary()
		verdict := ""
		if w.name == "on" {
			held = float64(of[0]) <= telemetryLimit*float64(base[0])
			verdict = fmt.Sprintf("  p50/off %v: %s", telemetryLimit, map[bool]string{true: "held", false: "exceeded"}[held])
		}
		var times, ratios strings.Builder
		for _, i := range []int{0, 2, 3} { // skip the 99th percentile, which depends on the machine
			fmt.Fprintf(&times, " %10s", of[i].Round(time.Microsecond))
			fmt.Fprintf(&ratios, " %9.3f", float64(of[i])/float64(base[i]))
		}
		if _, err := fmt.Fprintf(out, "%5d %7d %-7s %7d%s%s%s\n", 1, callers, w.name,
			len(all[w.name].evaluations), &times, &ratios, verdict); err != nil {
			return false, err
		}
	}
	return held, nil
}

// telemetryWays starts gateways with and without full telemetry, and a receiver of the telemetry. The caller must call
// stop, even after an error.
func (b *bench) telemetryWays(ctx context.Context) (ways []way, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, stop, err
	}
	metrics := "127.0.0.1:" + port
	collector, stopObserver, err := startObserver(ctx, "http://"+metrics+"/metrics")
	if err != nil {
		return nil, stop, err
	}
	stops = append(stops, stopObserver)
	seen := *b
	seen.logLevel = "2"
	seen.stderr = io.Discard
	for _, g := range []struct {
		name  string
		bench *bench
		env   []string
	}{
		{"off", b, []string{"OTEL_SDK_DISABLED=true"}},
		{"on", &seen, []string{"FNR_TELEMETRY_METRICS_ADDRESS=" + metrics, "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector}},
	} {
		server, err := g.bench.startGateway(ctx, g.env...)
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, server.stop)
		ways = append(ways, way{g.name, remoteWay(server.conn, b.image), server.cmd.Process.Pid, ""})
	}
	return ways, stop, nil
}
