// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package bed_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/krm-function-runner/function-runner/test/bed"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/imagecopy"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// fresh pushes the toolbox with random data to a registry, and returns the image's repository and
// tag: no node has it, whatever ran before.
func fresh(t *testing.T, registry bed.Registry) string {
	t.Helper()
	options := append(access(t, registry), remote.WithContext(suite.Context(t)))
	image, err := remote.Image(imagecopy.Reference(t, registry.Host+"/toolbox:latest"), options...)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := random.Layer(1<<10, types.DockerLayer)
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	fresh := "fresh/toolbox:" + digest.Hex[:12]
	if err := remote.Write(imagecopy.Reference(t, registry.Host+"/"+fresh), image, options...); err != nil {
		t.Fatal(err)
	}
	return fresh
}

// access is what the registry requires of its clients.
func access(t *testing.T, registry bed.Registry) []remote.Option {
	t.Helper()
	var options []remote.Option
	if registry.Username != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: registry.Username, Password: registry.Password}))
	}
	if registry.CAFile != "" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority(t))
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		t.Cleanup(transport.CloseIdleConnections)
		options = append(options, remote.WithTransport(transport))
	}
	return options
}
