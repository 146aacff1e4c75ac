// SPDX-License-Identifier: Apache-2.0

// Package registrytls connects to registries by TLS 1.2 or newer. It verifies certificates with the authorities of the
// system and of configured directories, and uses the proxies of the environment.
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
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/filewatch"
	"github.com/krm-function-runner/function-runner/libs/registryname"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
)

// Config contains the directories with certificates.
type Config struct {
	// Directory contains the files for all registries, see [load]. Empty means the system's authorities only.
	Directory string
	// Directories contain the files for single registries, by host or host:port, instead of those in Directory.
	Directories map[string]string
	Log         *slog.Logger
	// Changed is called after each change of a directory's content.
	Changed func()
}

// Store is an HTTP transport that uses the certificates for the host of each request.
type Store struct {
	cfg     Config
	general *directory
	hosts   map[string]*directory
}

// directory is a directory and the transport that uses the certificates in it.
type directory struct {
	path      string
	transport atomic.Pointer[http.Transport]

	mu   sync.Mutex
	last map[string][]byte
}

// New reads the directories. Files that do not exist yet are no error, files that cannot be parsed are.
func New(cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, general: &directory{path: cfg.Directory}, hosts: make(map[string]*directory)}
	for host, path := range cfg.Directories {
		s.hosts[registryname.Canonical(host)] = &directory{path: path}
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
// the files again, because an authority may just have been replaced.
func (s *Store) RoundTrip(req *http.Request) (*http.Response, error) {
	d, ok := s.hosts[registryname.Canonical(req.URL.Host)]
	if !ok {
		d = s.general
	}
	if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy != nil {
		// The connection leads to the proxy of the administrator.
		req = req.WithContext(dialguard.Lift(req.Context()))
	}
	used := d.transport.Load()
	resp, err := used.RoundTrip(req)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if untrusted && (req.Body == nil || req.Body == http.NoBody) {
		s.reloadDirectory(req.Context(), d)
		if now := d.transport.Load(); now != used {
			return now.RoundTrip(req)
		}
	}
	return resp, err
}

// Run reads the directories again when they change, until ctx is done.
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
		d.transport.Load().CloseIdleConnections()
	}
	return nil
}

// reloadDirectory reads a directory again. Files that cannot be parsed change nothing.
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

// readChanges reads the directory's files, and makes a new transport if they have changed. Running requests keep the
// old transport.
func (d *directory) readChanges() (changed bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	content, err := d.readFiles()
	if err != nil {
		return false, err
	}
	old := d.transport.Load()
	if old != nil && maps.EqualFunc(content, d.last, bytes.Equal) {
		return false, nil
	}
	config, err := loadConfig(content)
	if err != nil {
		return false, fmt.Errorf("certificates in %s: %w", d.path, err)
	}
	d.transport.Store(newTransport(config))
	d.last = content
	if old != nil {
		old.CloseIdleConnections()
	}
	return old != nil, nil
}

// Names of the files in a directory, as in a Kubernetes TLS secret or in docker's directories. The authorities are
// used in addition to the system's authorities. The client certificate is sent to registries that require it.
var (
	authorityFiles = []string{"ca.crt", "ca.pem"}
	pairFiles      = [][2]string{{"tls.crt", "tls.key"}, {"client.cert", "client.key"}}
)

// readFiles returns the existing files, by name.
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

// loadConfig returns the TLS settings for the content of files, by name.
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

// newTransport returns a transport with bounds for every step.
func newTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig:        config,
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialChecked,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// Received data needs memory until it is read. Eight fetches from the same registry fill a quarter of a
		// connection's buffer.
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 128 << 10, MaxReceiveBufferPerConnection: serve.MaxWindow},
	}
}

// dialChecked connects to an address. It checks the address that the kernel connects to, so that a restricted request
// never reaches a local address, regardless of its name.
func dialChecked(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout: 10 * time.Second, KeepAlive: 30 * time.Second,
		Control: func(_, found string, _ syscall.RawConn) error { return dialguard.Check(ctx, found) },
	}
	return dialer.DialContext(ctx, network, address)
}
