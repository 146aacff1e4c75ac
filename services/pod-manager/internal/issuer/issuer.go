// SPDX-License-Identifier: Apache-2.0

// Package issuer issues the certificates of the function runner's own programs, where a cluster has no other
// issuer: an authority in a Secret, and a Secret for each program, which its pods mount.
//
// Each replica of the pod-manager runs one. They need no owner: a Secret that another replica has written in
// between is read again, and then has what it needs.
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

	"go.opentelemetry.io/otel/metric"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// Config is what an Issuer needs.
type Config struct {
	// Secrets is the client for the namespace of the Secrets, all of which exist. They are read and updated,
	// one at a time.
	Secrets corev1client.SecretInterface
	// Authority is the Secret with the authorities and their keys.
	Authority string
	// Certificates are the SPIFFE IDs of the certificates, by the names of their Secrets.
	Certificates map[string]mtls.ID
	// Held is the certificate of this program, which is in no Secret. It is nil if this program has another one.
	Held *Held
	// Create is true if a missing Secret of Authority is created.
	Create bool
	// Life is how long certificates are valid, and AuthorityLife how long authorities are.
	Life, AuthorityLife time.Duration
	// Spread is how long an authority is in the Secrets before it issues certificates: longer than any program
	// takes to read it.
	Spread time.Duration
	// Pause is the time between two attempts.
	Pause time.Duration
	Log   *slog.Logger
	Meter metric.Meter
}

// Issuer issues certificates. Use [New].
type Issuer struct {
	config  Config
	metrics *metrics
	// held is the data of the certificate that is in no Secret.
	held map[string][]byte
	// failure is why the last attempt failed, nil if it did not.
	failure atomic.Pointer[error]
}

// New returns an issuer. It reads and writes nothing yet.
func New(config Config) (*Issuer, error) {
	metrics, err := newMetrics(config.Meter)
	if err != nil {
		return nil, err
	}
	return &Issuer{config: config, metrics: metrics, held: make(map[string][]byte, 3)}, nil
}

const (
	// attemptTimeout bounds one attempt.
	attemptTimeout = 20 * time.Second
	// firstBackoff is the time before the first retry.
	firstBackoff = time.Second
)

// Run keeps all Secrets up to date until ctx ends.
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
		if err := i.attempt(ctx); err != nil {
			next.Reset(backoff.Next())
			continue
		}
		backoff.Reset()
		next.Reset(pause)
	}
}

// attempt brings all Secrets up to date, and records whether that succeeded.
func (i *Issuer) attempt(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	err := i.issue(limited)
	if ctx.Err() != nil {
		return err // the program ends
	}
	i.metrics.attempted(ctx, err == nil)
	if err == nil {
		i.failure.Store(nil)
		return nil
	}
	if former := i.failure.Swap(&err); former == nil || (*former).Error() != err.Error() {
		i.config.Log.ErrorContext(ctx, "certificates not renewed; existing ones are valid for half of their life yet",
			"error", err)
	}
	return err
}

// issue brings all Secrets up to date. One that cannot be written does not keep the others from it.
func (i *Issuer) issue(ctx context.Context) error {
	var all authorities
	err := i.update(ctx, i.config.Authority, func(data map[string][]byte) (written func(), err error) {
		all, written, err = i.authorities(ctx, data)
		return written, err
	})
	if err != nil {
		i.refused(ctx, err)
		return err
	}
	problems := []error{i.hold(ctx, all)}
	for _, name := range slices.Sorted(maps.Keys(i.config.Certificates)) {
		problems = append(problems, i.update(ctx, name, func(data map[string][]byte) (func(), error) {
			return i.certificate(ctx, all, name, i.config.Certificates[name], data)
		}))
	}
	return errors.Join(problems...)
}

// authorities returns the authorities in a Secret, after it has replaced the ones that are due.
func (i *Issuer) authorities(
	ctx context.Context, data map[string][]byte,
) (all authorities, written func(), err error) {
	former, err := parseAuthorities(data)
	if err != nil {
		return nil, nil, err
	}
	all, err = former.renewed(time.Now(), i.config.AuthorityLife)
	if err != nil || all.same(former) {
		return all, nil, err
	}
	return all, func() {
		i.config.Log.InfoContext(ctx, "authorities changed", "secret", i.config.Authority, "authorities", len(all),
			"expires", all[len(all)-1].cert.NotAfter)
	}, all.write(data)
}

// certificate renews the certificate in a Secret if it is due, and the authorities beside it.
func (i *Issuer) certificate(
	ctx context.Context, all authorities, name string, id mtls.ID, data map[string][]byte,
) (written func(), err error) {
	now := time.Now()
	if bundle := all.bundle(); string(data[mtls.AuthoritiesFile]) != string(bundle) {
		data[mtls.AuthoritiesFile], written = bundle, func() {}
	}
	if !isDue(data, id, all, now) {
		return written, nil
	}
	expires, err := all.signer(now, i.config.Spread).issue(data, id, now, i.config.Life)
	return func() {
		i.metrics.issued(ctx, name)
		i.config.Log.InfoContext(ctx, "certificate issued", "secret", name, "id", id.String(), "expires", expires)
	}, err
}

// Details returns what is wrong with the issuer, for readiness.
func (i *Issuer) Details() []string {
	if err := i.failure.Load(); err != nil {
		return []string{fmt.Sprintf("certificates are not renewed: %v", *err)}
	}
	return nil
}
