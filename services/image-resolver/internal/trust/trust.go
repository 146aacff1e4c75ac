// SPDX-License-Identifier: Apache-2.0

// Package trust makes the connections to registries: TLS 1.2 and up with verified
// certificates, by the system's authorities and those of configured directories, and
// through the proxies that the environment names.
package trust

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/filewatch"
	"github.com/krm-function-runner/function-runner/libs/registryname"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
)

// Config is where certificates are found.
type Config struct {
	// Directory holds the files for all registries; empty for the system's
	// authorities only. See [load] for the names of files.
	Directory string
	// Directories hold the files for single registries, by host or host:port, in place
	// of those in Directory.
	Directories map[string]string
	Log         *slog.Logger
	// Changed is called after the content of a directory has changed.
	Changed func()
}

// Store is the HTTP transports for all registries.
type Store struct {
	cfg     Config
	general *directory
	hosts   map[string]*directory
}

// directory is a directory with the transport that its files make.
type directory struct {
	path      string
	transport atomic.Pointer[http.Transport]

	mu   sync.Mutex
	last map[string][]byte
}

// New reads the directories. Files that do not exist yet are no error, files that make
// no sense are.
func New(cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, general: &directory{path: cfg.Directory}, hosts: make(map[string]*directory)}
	for host, path := range cfg.Directories {
		s.hosts[registryname.Canonical(host)] = &directory{path: path}
	}
	for _, f := range s.directories() {
		if _, err := f.reload(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Store) directories() []*directory {
	all := []*directory{s.general}
	for _, f := range s.hosts {
		all = append(all, f)
	}
	return all
}

// RoundTrip sends a request with the trust of its host. If the host's certificate
// is not trusted, the files are looked at once more: an authority may just have
// been replaced.
func (s *Store) RoundTrip(req *http.Request) (*http.Response, error) {
	f, ok := s.hosts[registryname.Canonical(req.URL.Host)]
	if !ok {
		f = s.general
	}
	if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy != nil {
		// The connection leads to the proxy, which the administrator has chosen.
		req = req.WithContext(dialguard.Lift(req.Context()))
	}
	used := f.transport.Load()
	resp, err := used.RoundTrip(req)
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](
		err,
	); untrusted &&
		(req.Body == nil || req.Body == http.NoBody) {
		s.reload(req.Context(), f)
		if now := f.transport.Load(); now != used {
			return now.RoundTrip(req)
		}
	}
	return resp, err
}

// Run follows changes of the directories until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	for _, f := range s.directories() {
		if f.path != "" {
			watching.Go(func() { filewatch.WatchDirectory(ctx, s.cfg.Log, f.path, func() { s.reload(ctx, f) }) })
		}
	}
	<-ctx.Done()
	watching.Wait()
	for _, f := range s.directories() {
		f.transport.Load().CloseIdleConnections()
	}
	return nil
}

// reload reads a directory again. One that makes no sense changes nothing.
func (s *Store) reload(ctx context.Context, f *directory) {
	changed, err := f.reload()
	if err != nil {
		s.cfg.Log.ErrorContext(ctx, "certificates cannot be used: those last read stay in use", "error", err)
		return
	}
	if changed {
		s.cfg.Log.InfoContext(ctx, "read changed certificates", "directory", f.path)
		s.cfg.Changed()
	}
}

// read returns the files that the directory has, by name.
func (f *directory) read() (map[string][]byte, error) {
	content := make(map[string][]byte)
	if f.path == "" {
		return content, nil
	}
	for _, name := range fileNames {
		data, err := os.ReadFile(filepath.Join(f.path, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read certificates: %w", err)
		}
		if err == nil {
			content[name] = data
		}
	}
	return content, nil
}

// reload reads the directory's files, and makes a new transport if they have changed.
// Requests under way keep the old one.
func (f *directory) reload() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	content, err := f.read()
	if err != nil {
		return false, err
	}
	old := f.transport.Load()
	if old != nil && maps.EqualFunc(content, f.last, bytes.Equal) {
		return false, nil
	}
	config, err := load(content)
	if err != nil {
		return false, fmt.Errorf("certificates in %s: %w", f.path, err)
	}
	transport := newTransport()
	transport.TLSClientConfig = config
	f.transport.Store(transport)
	f.last = content
	if old != nil {
		old.CloseIdleConnections()
	}
	return old != nil, nil
}

// newTransport returns a transport whose every step has a bound.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// What is received and not read yet counts for memory: eight fetches from
		// one registry fill a quarter of a connection's buffer.
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 128 << 10, MaxReceiveBufferPerConnection: serve.MaxWindow},
	}
}

// dial connects to an address. A restricted request gets no connection to a local address,
// whatever the name resolved to: the address is checked that the kernel connects to.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout: 10 * time.Second, KeepAlive: 30 * time.Second,
		Control: func(_, found string, _ syscall.RawConn) error { return dialguard.Check(ctx, found) },
	}
	return dialer.DialContext(ctx, network, address)
}
