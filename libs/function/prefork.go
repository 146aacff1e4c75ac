// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// PreforkUnused is how long spare processes of a function without evaluations are kept.
const PreforkUnused = 10 * time.Minute

// MaxPrefork is the most processes of one function to keep started.
const MaxPrefork = 64

// CheckPrefork adds a problem if n, the setting of that name, is no number of
// processes to keep started.
func CheckPrefork(checks *config.Checks, name string, n int) {
	checks.That(n >= 0 && n <= MaxPrefork, name, n, fmt.Sprintf("0 (off) to %d", MaxPrefork))
}

// Preforks counts the runs of functions that are kept started, by whether a process
// was there. A nil Preforks counts nothing.
type Preforks struct {
	runs metric.Int64Counter
}

// NewPreforks returns a counter of the meter.
func NewPreforks(meter metric.Meter) (*Preforks, error) {
	runs, err := meter.Int64Counter("fn.prefork",
		metric.WithDescription("Evaluations of functions that are kept started, by whether there was a process."))
	if err != nil {
		return nil, fmt.Errorf("set up the metric of processes that are kept started: %w", err)
	}
	return &Preforks{runs: runs}, nil
}

func (p *Preforks) count(ctx context.Context, cmd fnproc.Command, prefork fnproc.Prefork) {
	if p == nil || prefork == fnproc.PreforkOff {
		return
	}
	p.runs.Add(ctx, 1, metric.WithAttributes(
		attribute.String("function", filepath.Base(cmd.Path)), attribute.String("outcome", prefork.String())))
}
