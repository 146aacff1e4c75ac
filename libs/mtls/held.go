// SPDX-License-Identifier: Apache-2.0

package mtls

import (
	"cmp"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Hold returns an identity that has no certificate yet, for programs that receive their certificate over the
// network instead of from files. Callers must set the certificate by [Identity.Replace], and must keep
// [Identity.Run] running while they use the identity.
func Hold(log *slog.Logger, meters metric.MeterProvider) (*Identity, error) {
	i := &Identity{log: log, told: make(map[string]time.Time), available: make(chan struct{})}
	return i, i.registerMetrics(meters.Meter("mtls"))
}

// Replace sets the certificate for new connections. The keys of files are the file names of [Config.Directory],
// such as "tls.crt". If the files are invalid, Replace returns an error and the current certificate stays in use.
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

func (i *Identity) location() string { return cmp.Or(i.directory, "memory") }
