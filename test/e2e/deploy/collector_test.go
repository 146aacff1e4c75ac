// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var observeCollector = flag.String("observe.collector", "", "program of test/collector, to send traces through")

// collectorBefore starts a real collector on the node, with the configuration in deploy/observability, and has it
// send traces on. It returns its URL.
func collectorBefore(t *testing.T, next string) string {
	t.Helper()
	const address = "172.30.0.1:4318"
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, *observeCollector,
		"--config=file:"+filepath.Join(root, "deploy/observability/collector/config.yaml"),
		"--config=yaml:exporters::otlphttp::endpoint: "+next, "--config=yaml:exporters::otlphttp::compression: none",
		"--config=yaml:receivers::otlp::protocols::http::endpoint: "+address,
		"--config=yaml:service::telemetry::metrics::level: none")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
	return "http://" + address
}
