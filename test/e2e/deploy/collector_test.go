// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// collectorVariable is the environment variable with the path of the program of test/collector.
const collectorVariable = "FNR_COLLECTOR"

// collectorBefore starts a real collector on the node, with the configuration in deploy/observability, and has it
// send traces on. It returns its URL, or that of next if there is no such program.
func collectorBefore(t *testing.T, next string) string {
	t.Helper()
	const address = "172.30.0.1:4318"
	program := os.Getenv(collectorVariable)
	if _, err := os.Stat(program); err != nil {
		t.Logf("without a real collector, which make e2e builds: %v", err)
		return next
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program,
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
