// SPDX-License-Identifier: Apache-2.0

package mtls

import (
	"cmp"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Hold returns the identity of a program whose certificate is in no file: [Identity.Replace] brings it. Run has to
// run while the identity is used.
func Hold(log *slog.Logger, meters metric.MeterProvider) (*Identity, error) {
	i := &Identity{log: log, told: make(map[string]time.Time), available: make(chan struct{})}
	return i, i.measure(meters.Meter("mtls"))
}

// Replace has new connections use a certificate, if it is another one. Files are what the files of a directory would
// hold. What cannot be used changes nothing, and is an error.
func (i *Identity) Replace(files map[string][]byte) error {
	found, err := parse(files, time.Now())
	if err != nil {
		return err
	}
	if current := i.current.Load(); current == nil || current.content != found.content {
		i.use(found)
	}
	return nil
}

// place is where the certificate is.
func (i *Identity) place() string { return cmp.Or(i.directory, "memory") }
