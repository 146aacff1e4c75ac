// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/phase"
)

// waits counts the leases that were not granted yet, by phase: those included that the pools do not know, because the
// Kubernetes API or the image-resolver has not answered.
type waits [podmanagerv1.Phase_PHASE_CONNECTING + 1]atomic.Int64

// begin counts one more lease, which is queued at first.
func (w *waits) begin() *wait {
	one := &wait{all: w, phase: podmanagerv1.Phase_PHASE_QUEUED}
	w[one.phase].Add(1)
	return one
}

// observe reports the leases, together and by phase.
func (w *waits) observe(o metric.Observer, total, byPhase metric.Int64Observable) {
	sum := int64(0)
	for p := range w {
		if name := phase.Name(podmanagerv1.Phase(p)); name != "" { //nolint:gosec // there are eight
			n := w[p].Load()
			sum += n
			o.ObserveInt64(byPhase, n, metric.WithAttributes(attribute.String("phase", name)))
		}
	}
	o.ObserveInt64(total, sum)
}

// wait is one of them.
type wait struct {
	all   *waits
	phase podmanagerv1.Phase
}

// enter counts the lease in another phase.
func (w *wait) enter(next podmanagerv1.Phase) {
	if phase.Name(next) != "" {
		w.all[w.phase].Add(-1)
		w.all[next].Add(1)
		w.phase = next
	}
}

// follow returns waiting, which also counts the lease in the phase that is reported.
func (w *wait) follow(waiting func(*lease.Waiting)) func(*lease.Waiting) {
	return func(report *lease.Waiting) {
		w.enter(report.GetPhase())
		waiting(report)
	}
}

// end counts the lease no longer.
func (w *wait) end() { w.all[w.phase].Add(-1) }
