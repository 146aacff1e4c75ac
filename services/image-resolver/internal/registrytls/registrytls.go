// SPDX-License-Identifier: Apache-2.0

// Package registrytls connects to registries by TLS 1.2 or newer. It trusts the certificate authorities of the
// system and of configured directories. It uses the proxies that environment variables such as HTTPS_PROXY specify.
package registrytls

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/filewatch"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
)

// Config contains the paths of the directories with certificates for connections to registries.
type Config struct {
	// Directory contains the certificates for all registries without an entry in Directories. If it is empty, only the
	// certificate authorities of the system are trusted.
	Directory string
	// Directories maps registries, as host or host:port, to directories that are used instead of Directory.
	Directories map[string]string
	Log         *slog.Logger
	// Changed is called after each change of the certificates, so that the caller can retry requests that had failed.
	Changed func()
	// Dial opens connections in tests. It must call [dialguard.Check]. The default connects to the network.
	Dial dialFunc
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Store is an HTTP transport that chooses the certificates by the host of each request.
type Store struct {
	cfg     Config
	general *directory
	hosts   map[string]*directory
}

// directory is a directory with certificates, and the HTTP transports that use these certificates.
type directory struct {
	path       string
	dial       dialFunc
	transports atomic.Pointer[transports]

	mu   sync.Mutex
	last map[string][]byte
}

// New reads the directories with certificates. Missing files are ignored, but an invalid file is an error.
func New(cfg Config) (*Store, error) {
	if cfg.Dial == nil {
		cfg.Dial = dialChecked
	}
	s := &Store{cfg: cfg, general: &directory{path: cfg.Directory, dial: cfg.Dial}, hosts: make(map[string]*directory)}
	for host, path := range cfg.Directories {
		s.hosts[imagename.CanonicalRegistry(host)] = &directory{path: path, dial: cfg.Dial}
	}
	for _, d := range s.allDirectories() {
		if _, err := d.readChanges(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Store) allDirectories() []*directory {
	return append(slices.Collect(maps.Values(s.hosts)), s.general)
}

// RoundTrip sends a request with the certificates for its host. If the host's certificate is not trusted, it reads
// the certificate files again and retries, because an authority may just have been replaced.
func (s *Store) RoundTrip(req *http.Request) (*http.Response, error) {
	d, ok := s.hosts[imagename.CanonicalRegistry(req.URL.Host)]
	if !ok {
		d = s.general
	}
	if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy != nil {
		// The connection leads to a proxy that the administrator has chosen, so local addresses are permitted.
		req = req.WithContext(dialguard.Lift(req.Context()))
	}
	used := d.transports.Load()
	resp, err := used.roundTrip(req)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if untrusted && (req.Body == nil || req.Body == http.NoBody) {
		s.reloadDirectory(req.Context(), d)
		if now := d.transports.Load(); now != used {
			return now.roundTrip(req)
		}
	}
	return resp, err
}

// Run reads the certificates again when a directory changes, until ctx is done.
func (s *Store) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	for _, d := range s.allDirectories() {
		if d.path != "" {
			watching.Go(func() { filewatch.WatchDirectory(ctx, s.cfg.Log, d.path, func() { s.reloadDirectory(ctx, d) }) })
		}
	}
	<-ctx.Done()
	watching.Wait()
	for _, d := range s.allDirectories() {
		d.transports.Load().closeIdle()
	}
	return nil
}

// reloadDirectory reads a directory again. If a file is invalid, it logs the error and keeps the current certificates.
func (s *Store) reloadDirectory(ctx context.Context, d *directory) {
	changed, err := d.readChanges()
	if err != nil {
		s.cfg.Log.ErrorContext(ctx, "certificates not applied, keeping the current certificates", "error", err)
		return
	}
	if changed {
		s.cfg.Log.InfoContext(ctx, "read changed certificates", "directory", d.path)
		s.cfg.Changed()
	}
}

// readChanges reads the certificates in the directory, and creates new HTTP transports if they have changed.
// Running requests keep the old transports.
func (d *directory) readChanges() (changed bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	content, err := d.readFiles()
	if err != nil {
		return false, err
	}
	old := d.transports.Load()
	if old != nil && maps.EqualFunc(content, d.last, bytes.Equal) {
		return false, nil
	}
	config, err := loadConfig(content)
	if err != nil {
		return false, fmt.Errorf("certificates in %s: %w", d.path, err)
	}
	created := new(transports)
	for scope := range created {
		created[scope] = newTransport(config.Clone(), d.dial) // a transport modifies its configuration
	}
	d.transports.Store(created)
	d.last = content
	if old != nil {
		old.closeIdle()
	}
	return old != nil, nil
}

// Names of certificate files, as in Kubernetes TLS secrets and in docker's directory certs.d. The authorities are
// trusted in addition to the system's authorities. The pairs are client certificates for registries that require them.
var (
	authorityFiles = []string{"ca.crt", "ca.pem"}
	pairFiles      = [][2]string{{"tls.crt", "tls.key"}, {"client.cert", "client.key"}}
)

// readFiles returns the content of the certificate files in the directory, by file name. It omits missing files.
func (d *directory) readFiles() (map[string][]byte, error) {
	content := make(map[string][]byte)
	if d.path == "" {
		return content, nil
	}
	for _, name := range slices.Concat(authorityFiles, pairFiles[0][:], pairFiles[1][:]) {
		data, err := os.ReadFile(filepath.Join(d.path, name))
		switch {
		case err == nil:
			content[name] = data
		case !errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("read certificates: %w", err)
		}
	}
	return content, nil
}

// loadConfig returns TLS settings with the certificates in content, which maps file names to file contents.
func loadConfig(content map[string][]byte) (*tls.Config, error) {
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
		cert, key := content[names[0]], content[names[1]]
		if cert == nil && key == nil {
			continue
		}
		if cert == nil || key == nil {
			return nil, fmt.Errorf("%s and %s: one exists without the other", names[0], names[1])
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", names[0], names[1], err)
		}
		config.Certificates = append(config.Certificates, pair)
	}
	return config, nil
}

// transports contains an HTTP transport for each scope, a set of addresses that requests may connect to. Addresses are
// checked only when a connection is made. Requests of different scopes thus must not share connections.
type transports [dialguard.Scopes]*http.Transport

// roundTrip sends a request with the transport of the request's scope.
func (t *transports) roundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	gotConn := func(got httptrace.GotConnInfo) {
		// The request may reuse a connection without a dial. Check then still calls OnPrivate. Its error is always nil here.
		_ = dialguard.Check(ctx, got.Conn.RemoteAddr().String())
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: gotConn})
	return t[dialguard.ScopeOf(ctx)].RoundTrip(req.WithContext(traced))
}

func (t *transports) closeIdle() {
	for _, transport := range t {
		transport.CloseIdleConnections()
	}
}

// newTransport returns an HTTP transport that limits the time or size of every step of a request.
func newTransport(config *tls.Config, dial dialFunc) *http.Transport {
	return &http.Transport{
		TLSClientConfig:        config,
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// Both limits bound the memory for received data that the client has not read yet. Each concurrent fetch uses a
		// stream. Eight streams fill at most a quarter of the connection's buffer.
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 128 << 10, MaxReceiveBufferPerConnection: serve.MaxWindow},
	}
}

// dialChecked opens a connection, unless the request must not connect to the IP address. The address is checked after
// DNS resolution, so that a host name cannot hide a local address.
func dialChecked(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout: 10 * time.Second, KeepAlive: 30 * time.Second,
		Control: func(_, found string, _ syscall.RawConn) error { return dialguard.Check(ctx, found) },
	}
	return dialer.DialContext(ctx, network, address)
}
