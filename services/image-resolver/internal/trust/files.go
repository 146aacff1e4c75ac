// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// The files of a directory. Those of authorities are added to the system's; a pair of
// certificate and key is shown to registries that ask for one, under the names of
// a Kubernetes TLS secret or of docker.
var (
	authorityFiles = []string{"ca.crt", "ca.pem"}
	pairFiles      = [][2]string{{"tls.crt", "tls.key"}, {"client.cert", "client.key"}}
	fileNames      = []string{"ca.crt", "ca.pem", "tls.crt", "tls.key", "client.cert", "client.key"}
)

// load returns the TLS settings that files make, by their names.
func load(content map[string][]byte) (*tls.Config, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's authorities: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	for _, name := range authorityFiles {
		if pem, ok := content[name]; ok && !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM format", name)
		}
	}
	for _, names := range pairFiles {
		cert, err := pair(content[names[0]], content[names[1]])
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", names[0], names[1], err)
		}
		if cert != nil {
			config.Certificates = append(config.Certificates, *cert)
		}
	}
	return config, nil
}

// pair returns the client certificate of two files, or nil if there is none.
func pair(cert, key []byte) (*tls.Certificate, error) {
	switch {
	case cert == nil && key == nil:
		return nil, nil
	case cert == nil || key == nil:
		return nil, errors.New("one is there without the other")
	}
	loaded, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	return &loaded, nil
}
