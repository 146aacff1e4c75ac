// SPDX-License-Identifier: Apache-2.0

// Package registry connects to the image registries of a cluster.
package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/krm-function-runner/function-runner/build/images/image"
	"github.com/krm-function-runner/function-runner/test/bed"
)

// Dial opens a connection, like [net.Dialer.DialContext].
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Open waits until a registry accepts connections, and returns a client of the registry.
func Open(ctx context.Context, described bed.Registry, dial Dial) (image.Registry, error) {
	transport := &http.Transport{DialContext: dial}
	if described.CAFile != "" {
		authority, err := os.ReadFile(described.CAFile)
		if err != nil {
			return image.Registry{}, fmt.Errorf("read the authority of registry %s: %w", described.Name, err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	auth := authn.Anonymous
	if described.Username != "" {
		auth = authn.FromConfig(authn.AuthConfig{Username: described.Username, Password: described.Password})
	}
	if err := reach(ctx, described.Host, dial); err != nil {
		return image.Registry{}, fmt.Errorf("wait for registry %s: %w", described.Name, err)
	}
	return image.Registry{Host: described.Host, Auth: auth, Transport: transport}.WithMounts(), nil
}

// reach waits until a registry accepts connections.
func reach(ctx context.Context, address string, dial Dial) error {
	for {
		connection, err := dial(ctx, "tcp", address)
		if err == nil {
			return connection.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
