// SPDX-License-Identifier: Apache-2.0

// Package mtls has programs prove to each other who they are: mutual TLS 1.3 with certificates that
// carry SPIFFE IDs, from files that are followed. New connections use new files at once, and
// connections that are open stay.
package mtls

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/filewatch"
)

// IDsWanted is what is allowed for settings that are lists of patterns.
const IDsWanted = "SPIFFE IDs, such as spiffe://function-runner/gateway, or their beginnings with /* at the end"

// IDWanted is the same for settings that are one ID.
const IDWanted = "a SPIFFE ID, such as spiffe://function-runner/gateway"

// Config is a program's settings of TLS.
type Config struct {
	// Directory is the directory with the program's certificate, for [mutual TLS](#mutual-tls) and for [callers with
	// identities](#callers-with-identities): `tls.crt`, `tls.key` and `ca.crt`, as cert-manager writes them into
	// Secrets. There is no TLS if it is empty.
	Directory string `split_words:"true"`
}

// Identity is the certificate of this program, with its key and the authorities that it trusts. All
// of it may change while it is used.
type Identity struct {
	directory string
	log       *slog.Logger
	// current is the certificate in use. It is nil until the first [Identity.Replace].
	current   atomic.Pointer[material]
	available chan struct{}
	// changed is called after each change of what is used, unless it is nil.
	changed atomic.Pointer[func()]
	// failure is why the files are not used, nil if they are.
	failure atomic.Pointer[error]
	// told is the material and expiry that the log has. Run alone uses it.
	told map[string]time.Time
}

// Open reads the files of cfg's directory, and returns nil if it names none. Run has to run while the
// identity is used.
func Open(cfg Config, log *slog.Logger, meters metric.MeterProvider) (*Identity, error) {
	if cfg.Directory == "" {
		return nil, nil
	}
	i := &Identity{
		directory: cfg.Directory, log: log, told: make(map[string]time.Time),
		available: make(chan struct{}),
	}
	found, err := read(cfg.Directory, time.Now())
	if err != nil {
		return nil, fmt.Errorf("read the certificate of this program in %s: %w", cfg.Directory, err)
	}
	i.use(found)
	return i, i.measure(meters.Meter("mtls"))
}

// Available returns a channel that closes when this program has a certificate. It is nil for a nil Identity.
func (i *Identity) Available() <-chan struct{} {
	if i == nil {
		return nil
	}
	return i.available
}

// OnChange has changed called after each change of the certificate or the authorities, and now if there are
// any. There is one such function at most, and it must not wait.
func (i *Identity) OnChange(changed func()) {
	i.changed.Store(&changed)
	if i.current.Load() != nil {
		changed()
	}
}

// ID returns the ID of this program, the zero ID while there is none.
func (i *Identity) ID() ID {
	if current := i.current.Load(); current != nil {
		return current.id
	}
	return ID{}
}

// Authorities returns the certificates of the authorities that this program trusts, as PEM, empty while there
// are none.
func (i *Identity) Authorities() string {
	if current := i.current.Load(); current != nil {
		return current.bundle
	}
	return ""
}

// use has new connections use a material.
func (i *Identity) use(found *material) {
	former := i.current.Swap(found)
	if changed := i.changed.Load(); changed != nil {
		(*changed)()
	}
	if former == nil {
		close(i.available)
	}
}

// errPending is the error of connections before this program has a certificate.
var errPending = errors.New("this program has no certificate yet")

// own returns the certificate of this program.
func (i *Identity) own() (*tls.Certificate, error) {
	current := i.current.Load()
	if current == nil {
		return nil, errPending
	}
	return &current.certificate, nil
}

// warnInterval is how often expiries are compared with the clock.
const warnInterval = time.Second

// Run follows the files until ctx ends. Files that cannot be used change nothing.
func (i *Identity) Run(ctx context.Context) error {
	if i.directory == "" {
		i.warn(ctx)
		return nil
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		filewatch.WatchDirectory(ctx, i.log, i.directory, func() { i.look(ctx) })
	}()
	defer func() { <-watched }()
	i.warn(ctx)
	return nil
}

// look uses the files if they have changed.
func (i *Identity) look(ctx context.Context) {
	found, err := read(i.directory, time.Now())
	current := i.current.Load()
	if err != nil {
		err = fmt.Errorf("read the certificate of this program in %s: %w", i.directory, err)
		if former := i.failure.Swap(&err); former == nil || (*former).Error() != err.Error() {
			i.log.WarnContext(ctx, "new certificate not used; the former one stays", "error", err)
		}
		return
	}
	i.failure.Store(nil)
	if found.content == current.content {
		return
	}
	i.use(found)
	i.log.InfoContext(ctx, "certificate replaced", "id", found.id.String(), "expires", found.expiries[0].at,
		"issuer_expires", found.expiries[1].at)
}

// warn logs each expiry once when it comes near.
func (i *Identity) warn(ctx context.Context) {
	tick := time.NewTicker(warnInterval)
	defer tick.Stop()
	for {
		for _, e := range i.near(time.Now()) {
			if i.told[e.what].Equal(e.at) {
				continue
			}
			i.told[e.what] = e.at
			i.log.ErrorContext(ctx, "a certificate expires soon and was not replaced; calls fail then",
				"what", e.what, "expires", e.at, "directory", i.place())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// near returns the expiries that are near or over.
func (i *Identity) near(now time.Time) []expiry {
	var near []expiry
	for _, e := range i.expiries() {
		if !now.Before(e.warn) {
			near = append(near, e)
		}
	}
	return near
}

// expiries returns the expiries of what is used.
func (i *Identity) expiries() []expiry {
	if current := i.current.Load(); current != nil {
		return current.expiries
	}
	return nil
}

// Details returns what is wrong with the certificate, for readiness: what expires soon, and why new
// files are not used.
func (i *Identity) Details() []string {
	if i == nil {
		return nil
	}
	var details []string
	for _, e := range i.near(time.Now()) {
		details = append(details, fmt.Sprintf("the %s in %s expires at %s: replace it",
			e.what, i.place(), e.at.UTC().Format(time.RFC3339)))
	}
	if err := i.failure.Load(); err != nil {
		details = append(details, (*err).Error())
	}
	return details
}

// measure sets up the metrics.
func (i *Identity) measure(meter metric.Meter) error {
	expires, err := meter.Float64ObservableGauge("fn.certificate.expiry.timestamp", metric.WithUnit("s"),
		metric.WithDescription("When the certificate of this program, or its issuer, expires, in Unix time."))
	if err != nil {
		return fmt.Errorf("set up the metrics of certificates: %w", err)
	}
	warns, err := meter.Float64ObservableGauge("fn.certificate.warning.timestamp", metric.WithUnit("s"),
		metric.WithDescription("When the program begins to report that it expires, in Unix time."))
	if err != nil {
		return fmt.Errorf("set up the metrics of certificates: %w", err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, e := range i.expiries() {
			what := metric.WithAttributes(attribute.String("certificate", e.what))
			o.ObserveFloat64(expires, float64(e.at.Unix()), what)
			o.ObserveFloat64(warns, float64(e.warn.Unix()), what)
		}
		return nil
	}, expires, warns)
	if err != nil {
		return fmt.Errorf("set up the metrics of certificates: %w", err)
	}
	return nil
}
