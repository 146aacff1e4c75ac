// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// registerMetrics registers metrics for the number of living replicas and for the ownership of functions.
func (k *Keeper) registerMetrics(meter metric.Meter) {
	members := telemetry.Must(meter.Int64ObservableGauge("fn.replicas",
		metric.WithDescription("Living replicas, as this replica sees them; 0 if the API rejects its Lease.")))
	owning := telemetry.Must(meter.Int64ObservableGauge("fn.replica.owning",
		metric.WithDescription(
			"1 while this replica may own functions: it is a member, or alone. 0 if not: joining, api (it cannot "+
				"write its Lease) or stood_down (no function pod answers, or it is stopping). Labels: reason.")))
	telemetry.Must(meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := k.Owners()
		o.ObserveInt64(members, int64(now.alive))
		var may int64
		if k.hasJoined() && now.StoodDown == "" {
			may = 1
		}
		o.ObserveInt64(owning, may, metric.WithAttributes(attribute.String("reason", k.stateName())))
		return nil
	}, members, owning))
}

// stateName returns the value of the label "reason" in the metric fn.replica.owning, such as "member".
func (k *Keeper) stateName() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !k.hasJoined():
		return "joining"
	case k.view.at.IsZero():
		return "alone"
	case k.isOverdue():
		return "api"
	case k.me.StoodDown != "":
		return "stood_down"
	default:
		return "member"
	}
}
