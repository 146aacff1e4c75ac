// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"os"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/audit"
)

// The outputs of the audit log that are no files.
const (
	auditStdout = "stdout"
	auditOTLP   = "otlp"
)

// maxAuditQueue bounds the events that are queued: each has some hundred bytes.
const maxAuditQueue = 1_000_000

// AuditConfig is the settings of the audit log.
type AuditConfig struct {
	// Output is where events go: the absolute path of a file, stdout, or otlp; empty for no audit log.
	Output string
	// Queue is how many events may be queued.
	Queue int `default:"10000"`
	// WhenFull is what happens when the queue is full: drop events, or reject evaluations.
	WhenFull string `split_words:"true" default:"drop"`
}

// check adds the problems of the settings.
func (c AuditConfig) check(checks *config.Checks) {
	if c.Output == "" {
		return
	}
	checks.That(c.Output == auditStdout || c.Output == auditOTLP || filepath.IsAbs(c.Output), "Audit.Output", c.Output,
		"stdout, otlp, or the absolute path of a file")
	checks.That(c.Queue > 0 && c.Queue <= maxAuditQueue, "Audit.Queue", c.Queue, "1 to 1000000")
	checks.That(c.WhenFull == audit.Drop || c.WhenFull == audit.Reject, "Audit.WhenFull", c.WhenFull, "drop or reject")
}

// newAudit returns the audit log; nil if there is none.
func newAudit(cfg AuditConfig, frame program.Frame) (*audit.Log, error) {
	if cfg.Output == "" {
		return nil, nil //nolint:nilnil // nil records nothing
	}
	output, err := openAudit(cfg.Output)
	if err != nil {
		return nil, err
	}
	return audit.New(audit.Config{
		Output: output, Queue: cfg.Queue, WhenFull: cfg.WhenFull, Telemetry: frame.Telemetry,
	})
}

// openAudit opens an output.
func openAudit(output string) (audit.Output, error) {
	switch output {
	case auditStdout:
		return audit.Lines(os.Stdout), nil
	case auditOTLP:
		return exportAudit()
	default:
		return audit.OpenFile(output)
	}
}

// exportAudit opens the export, which is a part of the program and not of a request.
var exportAudit = func() (audit.Output, error) { return audit.OpenOTLP(context.Background()) }
