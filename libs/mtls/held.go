// SPDX-License-Identifier: Apache-2.0

package mtls

import (
	"cmp"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Hold returns the identity of a program whose certificate is not in files: [Identity.Replace] sets it. Callers must
// run Run while they use the identity.
func Hold(log *slog.Logger, meters metric.MeterProvider) (*Identity, error) {
	i := &Identity{log: log, told: make(map[string]time.Time), available: make(chan struct{})}
	return i, i.registerMetrics(meters.Meter("mtls"))
}

// Replace makes a certificate current for new connections, if it differs from the current one. Files contains the
// contents of a directory's files. Invalid files change nothing, and return an error.
func (i *Identity) Replace(files map[string][]byte) error {
	found, err := parseFiles(files, time.Now())
	if err != nil {
		return err
	}
	if current := i.current.Load(); current == nil || current.content != found.content {
		i.useMaterial(found)
	}
	return nil
}

// location returns the location of the certificate, for errors.
func (i *Identity) location() string { return cmp.Or(i.directory, "memory") }
