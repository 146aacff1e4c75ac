// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// Credentials are what a client shows to a gateway, and how it knows the gateway. The zero Credentials
// are none, and the authorities of the system.
type Credentials struct {
	// Token is a token, or TokenFile a file with one, which is read for each request.
	Token, TokenFile string
	// Request, if not nil, returns a token for each request, in the place of these.
	Request func(ctx context.Context) (string, error)
	// Certificate and Key are the files of a client certificate.
	Certificate, Key string
	// Authority is the file with the authorities that a gateway's certificate may have, in place of
	// those of the system. Authorities are its content, if it is no file.
	Authority   string
	Authorities []byte
	// ServerID is the SPIFFE ID of the gateway, which stands in for the name of its host in a
	// certificate of Authority.
	ServerID string
}

// Used reports whether there are credentials, which a client shows with TLS only, or authorities for that.
func (c Credentials) Used() bool {
	return c.Token != "" || c.TokenFile != "" || c.Request != nil || c.Certificate != "" || c.Authority != ""
}

// check checks the credentials of a client of the gateway at a URL.
func (c Credentials) check(url string) error {
	secure := strings.HasPrefix(url, "https://")
	switch {
	case c.Token != "" && c.TokenFile != "":
		return errors.New("takes --token or --token-file, not both")
	case (c.Certificate == "") != (c.Key == ""):
		return errors.New("takes --cert and --key together")
	case c.Request != nil && (c.Token != "" || c.TokenFile != ""):
		return errors.New("takes --service-account or a token, not both")
	case !secure && (c.Token != "" || c.TokenFile != "" || c.Request != nil):
		return errors.New("sends a token with TLS only: give the address as https://host:port")
	case !secure && (c.Certificate != "" || c.Authority != ""):
		return errors.New("uses --cert, --key and --ca with TLS only: give the address as https://host:port")
	}
	return nil
}

// config returns how to connect to a host with TLS.
func (c Credentials) config(host string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Certificate != "" {
		certificate, err := tls.LoadX509KeyPair(c.Certificate, c.Key)
		if err != nil {
			return nil, fmt.Errorf("read --cert and --key: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	if c.Authority == "" {
		return config, nil
	}
	content := c.Authorities
	if content == nil {
		var err error
		if content, err = os.ReadFile(c.Authority); err != nil {
			return nil, fmt.Errorf("read --ca: %w", err)
		}
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("read --ca: no certificate in %s", c.Authority)
	}
	config.InsecureSkipVerify = true // VerifyConnection verifies: by name or by SPIFFE ID
	config.VerifyConnection = func(state tls.ConnectionState) error {
		return verify(state.PeerCertificates, roots, host, c.ServerID)
	}
	return config, nil
}

// verify verifies the certificate of a server that has the name of a host or a SPIFFE ID.
func verify(chain []*x509.Certificate, roots *x509.CertPool, host, id string) error {
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(options); err != nil {
		return err
	}
	named := chain[0].VerifyHostname(host)
	found, err := mtls.IDOf(chain[0])
	if named != nil && (err != nil || found.String() != id) {
		return fmt.Errorf("the server's certificate is for %v, not for %s or %s", identities(chain[0]), host, id)
	}
	return nil
}

// identities returns whom a certificate is for.
func identities(c *x509.Certificate) []string {
	all := slices.Clone(c.DNSNames)
	for _, u := range c.URIs {
		all = append(all, u.String())
	}
	return all
}

// authorized sends requests with a token.
type authorized struct {
	next  http.RoundTripper
	token func(ctx context.Context) (string, error)
}

// authorize returns a transport whose requests have the token of the credentials.
func (c Credentials) authorize(next http.RoundTripper) http.RoundTripper {
	switch {
	case c.Request != nil:
		return authorized{next, c.Request}
	case c.Token != "":
		return authorized{next, func(context.Context) (string, error) { return c.Token, nil }}
	case c.TokenFile != "":
		return authorized{next, func(context.Context) (string, error) {
			content, err := os.ReadFile(c.TokenFile)
			if err != nil {
				return "", fmt.Errorf("read --token-file: %w", err)
			}
			return strings.TrimSpace(string(content)), nil
		}}
	}
	return next
}

// RoundTrip implements http.RoundTripper.
func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := a.token(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as http.RoundTripper has to
		}
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return a.next.RoundTrip(req)
}
