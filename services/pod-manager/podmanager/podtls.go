// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"
	"log/slog"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// podTLS keeps the TLS settings of new function pods up to date. These are the pods' identities and permitted callers.
type podTLS struct {
	identity *mtls.Identity
	callers  callers
	use      func(*podspec.TLS)
	log      *slog.Logger
	meter    metric.Meter
	changed  chan struct{} // signals a change of identity, has capacity 1
	// known closes once this program has a certificate, or the issuer has refused to issue a certificate.
	known chan struct{}
}

// podTLS returns a component that updates the TLS settings of new function pods. It calls use with the settings after
// each change. It does nothing if this program has no identity, or if PodTLS is off.
func (c *Config) podTLS(callers callers, use func(*podspec.TLS), frame servermain.Frame) *podTLS {
	p := &podTLS{
		callers: callers, use: use, log: frame.Telemetry.Log, meter: frame.Telemetry.Meters.Meter("pod-manager"),
		changed: make(chan struct{}, 1), known: make(chan struct{}),
	}
	if frame.Identity == nil || !c.PodTLS {
		close(p.known)
		return p
	}
	p.identity = frame.Identity
	p.identity.OnChange(func() {
		select {
		case p.changed <- struct{}{}:
		default: // an earlier signal is still pending
		}
	})
	return p
}

// Run updates the TLS settings of new pods until ctx is cancelled. It does so when this program's certificate or
// trusted authorities change. If the certificate cannot be issued, pods are created without certificates. If they
// waited for a certificate, all functions in pods would fail.
func (p *podTLS) Run(ctx context.Context) error {
	certified := telemetry.Must(p.meter.Int64Gauge("fn.pods.certified", metric.WithDescription(
		"1 if new function pods get certificates and serve only the programs that lease them, or 0; absent without "+
			"mutual TLS.")))
	if p.identity != nil {
		certified.Record(ctx, 0)
	}
	closeKnown := sync.OnceFunc(func() { close(p.known) })
	for {
		select {
		case <-p.changed:
			p.use(p.newSettings())
			certified.Record(ctx, 1)
		case why := <-p.callers.refused:
			p.reportRefusal(ctx, why)
		case <-ctx.Done():
			return nil
		}
		closeKnown()
	}
}

// reportRefusal logs that function pods are created without certificates. If known is closed, it logs nothing, because
// pods have certificates or an earlier call has logged the problem.
func (p *podTLS) reportRefusal(ctx context.Context, why error) {
	select {
	case <-p.known:
		return
	default:
	}
	p.log.ErrorContext(ctx, "function pods have no certificates, and answer all that reach them", "error", why,
		"hint", "let the account of this program get and update the Secret, as the manifests do")
}

func (p *podTLS) newSettings() *podspec.TLS {
	own, ids := p.identity.ID(), p.callers.ids
	if len(ids) == 0 {
		ids = []string{own.String()}
	}
	return &podspec.TLS{
		IDs: own.Sibling("function-pod").String(), Authorities: p.identity.Authorities(), Callers: ids,
	}
}
