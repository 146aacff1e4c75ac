// SPDX-License-Identifier: Apache-2.0

// Package mtls implements mutual TLS 1.3, in which client and server authenticate by certificates with SPIFFE IDs.
// It watches the certificate files. When they change, new connections use the new certificate, and open connections
// continue.
package mtls

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/filewatch"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// IDsWanted describes a list of SPIFFE IDs and prefixes, for error messages about invalid settings.
const IDsWanted = "SPIFFE IDs, such as spiffe://function-runner/gateway, or their beginnings with /* at the end"

// IDWanted describes a SPIFFE ID, for error messages about invalid settings.
const IDWanted = "a SPIFFE ID, such as spiffe://function-runner/gateway"

// Config configures TLS.
type Config struct {
	// Directory is the directory with the program's certificate, for [mutual TLS](#mutual-tls) and for [callers with
	// identities](#callers-with-identities): `tls.crt`, `tls.key` and `ca.crt`, as cert-manager writes them into Secrets.
	// If it is empty, the program does not use TLS.
	Directory string `split_words:"true"`
}

// Identity is this program's certificate, with its private key and the trusted authorities. A renewal of the
// certificate replaces all of them.
type Identity struct {
	directory string
	log       *slog.Logger
	// current is the certificate in use. It is noMaterial while the program waits to receive its first certificate over
	// the network.
	current   atomic.Pointer[material]
	available chan struct{}
	// changed is the function that OnChange registered. It may be nil.
	changed atomic.Pointer[func()]
	// failure is the error of the latest certificate files, or nil if the program uses these files.
	failure atomic.Pointer[error]
	// told contains the expiries that Run has already logged, so that Run logs each expiry once. Only Run uses it.
	told map[string]time.Time
}

// Open returns the identity with the certificate in cfg.Directory. It returns nil if no directory is configured.
// Callers must keep [Identity.Run] running while they use the identity.
func Open(cfg Config, log *slog.Logger, meters metric.MeterProvider) (*Identity, error) {
	if cfg.Directory == "" {
		return nil, nil
	}
	found, err := readDirectory(cfg.Directory, time.Now())
	if err != nil {
		return nil, fmt.Errorf("read the certificate of this program in %s: %w", cfg.Directory, err)
	}
	i := Hold(log, meters)
	i.directory = cfg.Directory
	i.useMaterial(found)
	return i, nil
}

// Available returns a channel that is closed when the program has its first certificate. It returns nil if i is nil.
func (i *Identity) Available() <-chan struct{} {
	if i == nil {
		return nil
	}
	return i.available
}

// OnChange registers a function that is called when the certificate or the authorities change. If there is a
// certificate, OnChange also calls the function immediately. A second call replaces the registered function. The
// function must not block.
func (i *Identity) OnChange(changed func()) {
	i.changed.Store(&changed)
	if i.current.Load() != noMaterial {
		changed()
	}
}

// ID returns the SPIFFE ID in this program's certificate, or the zero ID while there is no certificate.
func (i *Identity) ID() ID { return i.current.Load().id }

// Authorities returns the trusted authorities as PEM, or an empty string while there is no certificate.
func (i *Identity) Authorities() string { return i.current.Load().bundle }

func (i *Identity) useMaterial(found *material) {
	former := i.current.Swap(found)
	if changed := i.changed.Load(); changed != nil {
		(*changed)()
	}
	if former == noMaterial {
		close(i.available)
	}
}

// errPending is the error of TLS handshakes while this program has no certificate.
var errPending = errors.New("this program has no certificate yet")

func (i *Identity) ownCertificate() (*tls.Certificate, error) {
	current := i.current.Load()
	if current == noMaterial {
		return nil, errPending
	}
	return &current.certificate, nil
}

// warnInterval is the interval between checks for a certificate that expires soon.
const warnInterval = time.Second

// Run reloads the certificate when its files change, and logs an error before the certificate expires. It returns
// when ctx is done. If the new files are invalid, the current certificate stays in use.
func (i *Identity) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	if i.directory != "" {
		watching.Go(func() {
			filewatch.WatchDirectory(ctx, i.log, i.directory, func() { i.reloadFiles(ctx) })
		})
	}
	i.warnOfExpiries(ctx)
	watching.Wait()
	return nil
}

// reloadFiles reads the certificate files, and uses the new certificate if they have changed.
func (i *Identity) reloadFiles(ctx context.Context) {
	found, err := readDirectory(i.directory, time.Now())
	current := i.current.Load()
	if err != nil {
		err = fmt.Errorf("read the certificate of this program in %s: %w", i.directory, err)
		if former := i.failure.Swap(&err); former == nil || (*former).Error() != err.Error() {
			i.log.WarnContext(ctx, "new certificate not used, keeping the current one", "error", err)
		}
		return
	}
	i.failure.Store(nil)
	if found.content == current.content {
		return
	}
	i.useMaterial(found)
	i.log.InfoContext(ctx, "certificate replaced", "id", found.id.String(), "expires", found.expiries[0].at,
		"issuer_expires", found.expiries[1].at)
}

// warnOfExpiries logs an error before a certificate expires, once per certificate, until ctx is done.
func (i *Identity) warnOfExpiries(ctx context.Context) {
	tick := time.NewTicker(warnInterval)
	defer tick.Stop()
	for {
		for _, e := range i.nearExpiries(time.Now()) {
			if i.told[e.what].Equal(e.at) {
				continue
			}
			i.told[e.what] = e.at
			i.log.ErrorContext(ctx, "a certificate expires soon and was not replaced; calls fail then",
				"what", e.what, "expires", e.at, "directory", i.location())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (i *Identity) nearExpiries(now time.Time) []expiry {
	var near []expiry
	for _, e := range i.current.Load().expiries {
		if !now.Before(e.warn) {
			near = append(near, e)
		}
	}
	return near
}

// Details returns the certificate's problems for health checks: a certificate that expires soon, or an error in new
// certificate files.
func (i *Identity) Details() []string {
	if i == nil {
		return nil
	}
	var details []string
	for _, e := range i.nearExpiries(time.Now()) {
		details = append(details, fmt.Sprintf("the %s in %s expires at %s: replace it",
			e.what, i.location(), e.at.UTC().Format(time.RFC3339)))
	}
	if err := i.failure.Load(); err != nil {
		details = append(details, (*err).Error())
	}
	return details
}

func (i *Identity) registerMetrics(meter metric.Meter) {
	expires := telemetry.Must(meter.Float64ObservableGauge("fn.certificate.expiry.timestamp", metric.WithUnit("s"),
		metric.WithDescription(
			"Unix time at which the program's certificate expires, or its longest-lived issuer. "+
				"Labels: certificate.")))
	warns := telemetry.Must(meter.Float64ObservableGauge("fn.certificate.warning.timestamp", metric.WithUnit("s"),
		metric.WithDescription(
			"Unix time at which the program begins to report the expiry: an hour before, or in the last quarter of "+
				"a shorter life. Labels: certificate.")))
	telemetry.Must(meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, e := range i.current.Load().expiries {
			what := metric.WithAttributes(attribute.String("certificate", e.what))
			o.ObserveFloat64(expires, float64(e.at.Unix()), what)
			o.ObserveFloat64(warns, float64(e.warn.Unix()), what)
		}
		return nil
	}, expires, warns))
}

// Hold returns an identity without a certificate, for programs that receive their certificate over the network instead
// of from files. Callers must set the certificate with [Identity.Replace], and must keep [Identity.Run] running while
// they use the identity.
func Hold(log *slog.Logger, meters metric.MeterProvider) *Identity {
	i := &Identity{log: log, told: make(map[string]time.Time), available: make(chan struct{})}
	i.current.Store(noMaterial)
	i.registerMetrics(meters.Meter("mtls"))
	return i
}

// Replace sets the certificate for new connections. Its argument maps the names of the files in [Config.Directory],
// such as "tls.crt", to the contents of the new files. If the files are invalid, Replace returns an error and the
// current certificate stays in use.
func (i *Identity) Replace(files map[string][]byte) error {
	found, err := parseFiles(files, time.Now())
	if err != nil {
		return err
	}
	if i.current.Load().content != found.content {
		i.useMaterial(found)
	}
	return nil
}

func (i *Identity) location() string { return cmp.Or(i.directory, "memory") }
