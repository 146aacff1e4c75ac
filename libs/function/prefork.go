// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// PreforkUnused is how long spare processes of a function without evaluations are kept.
const PreforkUnused = 10 * time.Minute

// Preforks counts the runs of functions with spare processes, by whether there was one. A nil
// Preforks counts nothing.
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
	name, _, _ := strings.Cut(filepath.Base(cmd.Function()), "@") // without an image's digest
	p.runs.Add(ctx, 1, metric.WithAttributes(
		attribute.String("function", name), attribute.String("outcome", prefork.String())))
}
