// SPDX-License-Identifier: Apache-2.0

// Package issuer issues the TLS certificates of the function runner's own programs, in clusters without another issuer.
// It stores a certificate authority in a Secret, and the certificate of each program in another Secret, which the
// program's pods mount. Each replica of the pod-manager runs an issuer, without leader election. If two replicas write
// a Secret concurrently, the slower replica reads the Secret again, and finds it up to date.
package issuer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Config configures an Issuer.
type Config struct {
	// Secrets is the client for the namespace of all Secrets. The issuer requires rights on each Secret by name, but no
	// right to list Secrets. All Secrets must exist, except the Secret of the authority if Create is true.
	Secrets corev1client.SecretInterface
	// Authority is the name of the Secret with the certificate authorities and their private keys.
	Authority string
	// Certificates contains the SPIFFE ID of each certificate to issue, by the name of its Secret.
	Certificates map[string]mtls.ID
	// Held configures the certificate that the issuer's own program keeps in memory. It is nil if another issuer provides
	// this program's certificate.
	Held *Held
	// Create is true if the issuer creates the authority's Secret when it is missing.
	Create bool
	// Life is the validity period of certificates. AuthorityLife is the validity period of certificate authorities.
	Life, AuthorityLife time.Duration
	// Spread is the delay between the creation of an authority and its first signature. During this time, the new
	// authority spreads to all programs, which read it from their Secrets. Then all of them trust its certificates.
	Spread time.Duration
	// Pause is the interval between checks of the Secrets, and the maximum delay of a retry after a failure.
	Pause time.Duration
	Log   *slog.Logger
	Meter metric.Meter
}

// Issuer issues certificates. Use [New].
type Issuer struct {
	config       Config
	certificates metric.Int64Counter // issued certificates
	inStep       metric.Int64Gauge   // 1 if the last attempt succeeded
	// held contains the certificate and key of this program, and the authorities, in the form of a Secret's data.
	held map[string][]byte
	// failure is the error of the last attempt to renew certificates. It is nil if the attempt succeeded.
	failure atomic.Pointer[error]
}

// New returns an issuer. The issuer sends no requests before [Issuer.Run] is called.
func New(config Config) *Issuer {
	i := &Issuer{config: config, held: make(map[string][]byte, 3)}
	i.certificates = telemetry.Must(config.Meter.Int64Counter("fn.issuer.certificates",
		metric.WithDescription("Certificates that the issuer issued, by their Secret. Labels: secret.")))
	i.inStep = telemetry.Must(config.Meter.Int64Gauge("fn.issuer.in_step",
		metric.WithDescription("1 if the last renewal of certificates succeeded, or 0.")))
	return i
}

const (
	// attemptTimeout limits an attempt to renew the certificates in all Secrets.
	attemptTimeout = 20 * time.Second
	// firstBackoff is the delay before the first retry of a failed attempt.
	firstBackoff = time.Second
)

// Run keeps the authorities and certificates in all Secrets valid until ctx is cancelled.
func (i *Issuer) Run(ctx context.Context) error {
	pause := i.config.Pause
	backoff := retry.Backoff{First: min(firstBackoff, pause), Max: pause}
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
		if err := i.attemptRenewal(ctx); err != nil {
			next.Reset(backoff.Next())
			continue
		}
		backoff.Reset()
		next.Reset(pause)
	}
}

// attemptRenewal renews the authorities and certificates that are due. It records the result in metrics, in logs and
// for [Issuer.Details].
func (i *Issuer) attemptRenewal(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	err := i.renewAll(limited)
	if ctx.Err() != nil {
		return err // the program is stopping
	}
	i.inStep.Record(ctx, telemetry.Bool(err == nil))
	if err == nil {
		i.failure.Store(nil)
		return nil
	}
	if former := i.failure.Swap(&err); former == nil || (*former).Error() != err.Error() {
		i.config.Log.ErrorContext(ctx, "certificates not renewed; the current ones stay valid for half of their lifetime",
			"error", err)
	}
	return err
}

// renewAll renews all authorities and certificates that are due. If it cannot update the Secret of a single program, it
// continues with the other Secrets.
func (i *Issuer) renewAll(ctx context.Context) error {
	var all authorities
	err := i.updateSecret(ctx, i.config.Authority, func(data map[string][]byte) (written func(), err error) {
		all, written, err = i.renewAuthorities(ctx, data)
		return written, err
	})
	if err != nil {
		if i.config.Held != nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
			i.config.Held.Refused(ctx, err)
		}
		return err
	}
	problems := []error{i.renewHeld(ctx, all)}
	for _, name := range slices.Sorted(maps.Keys(i.config.Certificates)) {
		problems = append(problems, i.updateSecret(ctx, name, func(data map[string][]byte) (func(), error) {
			return i.renewCertificate(ctx, all, name, i.config.Certificates[name], data)
		}))
	}
	return errors.Join(problems...)
}

// renewAuthorities removes expired authorities from a Secret's data, and adds a new authority when it is due. The
// returned function written is nil if nothing changed. Otherwise, the caller must store data and then call written.
func (i *Issuer) renewAuthorities(
	ctx context.Context, data map[string][]byte,
) (all authorities, written func(), err error) {
	former, err := parseAuthorities(data)
	if err != nil {
		return nil, nil, err
	}
	all, err = former.ensureValid(time.Now(), i.config.AuthorityLife)
	if err != nil || all.equalTo(former) {
		return all, nil, err
	}
	return all, func() {
		i.config.Log.InfoContext(ctx, "authorities changed", "secret", i.config.Authority, "authorities", len(all),
			"expires", all[len(all)-1].cert.NotAfter)
	}, all.writeSecret(data)
}

// renewCertificate updates the authorities in a Secret's data, and replaces the certificate if it is due. The returned
// function written is nil if nothing changed. Otherwise, the caller must store data and then call written.
func (i *Issuer) renewCertificate(
	ctx context.Context, all authorities, name string, id mtls.ID, data map[string][]byte,
) (written func(), err error) {
	now := time.Now()
	if bundle := all.encodeBundle(); string(data[mtls.AuthoritiesFile]) != string(bundle) {
		data[mtls.AuthoritiesFile] = bundle
		written = func() {}
	}
	if !isDue(data, id, all, now) {
		return written, nil
	}
	expires, err := all.chooseSigner(now, i.config.Spread).issueCertificate(data, id, now, i.config.Life)
	return func() {
		i.certificates.Add(ctx, 1, metric.WithAttributes(attribute.String("secret", name)))
		i.config.Log.InfoContext(ctx, "certificate issued", "secret", name, "id", id.String(), "expires", expires)
	}, err
}

// Details returns the error of the last renewal, if it failed. The program's readiness endpoint shows it.
func (i *Issuer) Details() []string {
	if err := i.failure.Load(); err != nil {
		return []string{fmt.Sprintf("certificates are not renewed: %v", *err)}
	}
	return nil
}

// Held configures the certificate that the issuer's own program keeps in memory. Each replica issues its own
// certificate, signed by the authority that all replicas share.
type Held struct {
	ID mtls.ID
	// Use is called with the files of each new certificate, by file name: the certificate, its key and the trusted
	// authorities, as PEM.
	Use func(files map[string][]byte) error
	// Refused is called with the error if the authority's Secret is missing, or if Kubernetes forbids access to it. Only a
	// user can correct these errors, whereas other failures are temporary.
	Refused func(ctx context.Context, why error)
}

// heldSecret replaces a Secret's name in logs and metrics. The certificate in memory is stored in no Secret.
const heldSecret = "none"

// renewHeld renews the certificate in memory if it is due, and calls [Held.Use] with the new certificate.
func (i *Issuer) renewHeld(ctx context.Context, all authorities) error {
	if i.config.Held == nil {
		return nil
	}
	written, err := i.renewCertificate(ctx, all, heldSecret, i.config.Held.ID, i.held)
	if err == nil && written != nil {
		err = i.config.Held.Use(i.held)
	}
	if err != nil {
		clear(i.held) // the next attempt then issues a new certificate
		return fmt.Errorf("issue the certificate of this program: %w", err)
	}
	if written != nil {
		written()
	}
	return nil
}
