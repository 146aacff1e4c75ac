// SPDX-License-Identifier: Apache-2.0

// Package registry is a client of registries. It sends credentials only to the registry that they belong to, encrypts
// connections unless a registry is listed as insecure, bounds answers, and quotes registries in errors.
package registry

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/registryname"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
)

// Credentials finds the credential for a repository.
type Credentials interface {
	// Lookup returns the credential, or a zero Credential.
	Lookup(ctx context.Context, repository string) (credentials.Credential, error)
	// Renew is Lookup after the registry rejected the credential.
	Renew(ctx context.Context, repository string) (credentials.Credential, error)
}

// Config configures a Client.
type Config struct {
	// Transport sends requests. It selects certificates and proxies.
	Transport   http.RoundTripper
	Credentials Credentials
	// Insecure are the registries, as host or host:port, for which plain HTTP is permitted.
	Insecure []string
	// Local lists registries that may be at local addresses, in addition to the registries in Insecure and the
	// mirrors.
	Local []string
	// PublicOnly rejects private addresses of registries that are in neither Insecure, Local nor the mirrors.
	PublicOnly bool
	// Mirrors are repositories' prefixes to try before a registry, by its host or
	// host:port, or by the beginning of its repositories, such as gcr.io/kpt-fn.
	Mirrors map[string][]string
	// Concurrent is the maximum number of concurrent fetches. An eighth of them may be from the same registry.
	Concurrent int64
	// Lookup resolves a registry's name. It defaults to net.Resolver.LookupNetIP.
	Lookup    func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Telemetry *telemetry.Telemetry
}

// Client talks to registries.
type Client struct {
	cfg     Config
	limiter *limiter
	metrics *metrics
	// plaintext contains the registries listed as insecure, local the registries that may be at local addresses, and
	// mirrors the mirrors of registries and repository prefixes, all by canonical name.
	plaintext map[string]bool
	local     map[string]bool
	mirrors   map[string][]string
}

// New returns a client.
func New(cfg Config) (*Client, error) {
	if cfg.Lookup == nil {
		cfg.Lookup = net.DefaultResolver.LookupNetIP
	}
	m, err := newMetrics(cfg.Telemetry)
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, limiter: newLimiter(cfg.Concurrent), metrics: m,
		plaintext: make(map[string]bool), local: make(map[string]bool), mirrors: make(map[string][]string),
	}
	for _, host := range cfg.Insecure {
		c.plaintext[registryname.Canonical(host)] = true
	}
	for _, host := range slices.Concat(cfg.Insecure, cfg.Local) {
		c.local[registryname.Canonical(host)] = true
	}
	for _, host := range slices.Sorted(maps.Keys(cfg.Mirrors)) {
		name := canonicalPrefix(strings.TrimRight(host, "/"))
		c.mirrors[name] = append(c.mirrors[name], cfg.Mirrors[host]...)
		for _, mirror := range cfg.Mirrors[host] {
			address, _, _ := strings.Cut(mirror, "/")
			c.local[registryname.Canonical(address)] = true
		}
	}
	return c, nil
}

// With calls use with a session for the repository, such as "docker.io/library/busybox": for each of its mirrors until
// use succeeds, and finally for the registry itself. Errors are classified: Precondition with the registry's own words,
// Unavailable if no registry can be reached, or the class of use's error.
func (c *Client) With(ctx context.Context, repository string, use func(context.Context, *Session) error) error {
	var missed []string
	sources := c.sourcesOf(repository)
	for i, source := range sources {
		last := i == len(sources)-1
		err := c.useSource(ctx, source, last, use)
		if err == nil || ctx.Err() != nil || isLocalFailure(err) {
			return err
		}
		if last {
			return withMirrors(err, missed)
		}
		missed = append(missed, err.Error())
	}
	return nil
}

// isLocalFailure reports whether an error is about a file of this machine, such as a full disk. All other sources
// would fail in the same way.
func isLocalFailure(err error) bool {
	_, ofFile := errors.AsType[*fs.PathError](err)
	return ofFile || DiskFailure(err) != nil
}

// DiskFailure returns the error of a file system that rejects all writes. It returns nil for other errors.
func DiskFailure(err error) error {
	for _, errno := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, errno) {
			return errno
		}
	}
	return nil
}

// withMirrors puts the errors of the mirrors before err, because they matter most at a site without access to the
// registry.
func withMirrors(err error, missed []string) error {
	if len(missed) == 0 {
		return err
	}
	return fault.New(fault.Of(err), "%s; after that: %w", strings.Join(missed, "; "), err)
}

// canonicalPrefix returns the canonical spelling of a registry or of a repository prefix.
func canonicalPrefix(prefix string) string {
	if !strings.Contains(prefix, "/") {
		return registryname.Canonical(prefix)
	}
	return imagename.CanonicalRepository(prefix)
}

// sourcesOf returns the repository's names at its mirrors, longest prefix first, and finally its own name.
func (c *Client) sourcesOf(repository string) []string {
	var all []string
	for end := len(repository); end > 0; end = strings.LastIndexByte(repository[:end], '/') {
		for _, mirror := range c.mirrors[canonicalPrefix(repository[:end])] {
			all = append(all, strings.TrimRight(mirror, "/")+repository[end:])
		}
	}
	return append(all, repository)
}

// useSource calls use with a single source. A mirror may use half of the remaining time.
func (c *Client) useSource(
	ctx context.Context, source string, last bool, use func(context.Context, *Session) error,
) (err error) {
	if deadline, ok := ctx.Deadline(); ok && !last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	// This happens before the session acquires a slot, so that a hanging credential helper delays only its own
	// registries.
	cred, err := c.cfg.Credentials.Lookup(ctx, source)
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(source, "/")
	slot, err := c.limiter.acquire(ctx, registryname.Canonical(host))
	if err != nil {
		return err
	}
	defer func() {
		class := fault.Of(err)
		slot.release(err != nil && (class == fault.Unavailable || class == fault.DeadlineExceeded))
	}()
	err = c.useSession(ctx, slot, source, cred, use)
	if err == nil {
		slot.recordAnswer()
	}
	status := statusOf(err)
	if status != http.StatusUnauthorized && (status != http.StatusForbidden || !cred.Kept) {
		return err
	}
	// Retry with a new login, because the credential may just have been replaced, or a token may have expired early.
	fresh, renewErr := c.cfg.Credentials.Renew(ctx, source)
	switch {
	case renewErr != nil:
		return renewErr
	case status == http.StatusForbidden && fresh.Auth == cred.Auth:
		return err // an authenticated caller is not authorized
	}
	return c.useSession(ctx, slot, source, fresh, use)
}

func (c *Client) useSession(
	ctx context.Context, slot *slot, source string, cred credentials.Credential, use func(context.Context, *Session) error,
) error {
	s, err := c.openSession(ctx, slot, source, cred)
	if err != nil {
		return err
	}
	return use(ctx, s)
}

// isInsecure reports whether plain HTTP may be spoken to a host.
func (c *Client) isInsecure(host string) bool { return c.plaintext[registryname.Canonical(host)] }

func (c *Client) isListed(host string) bool { return c.local[registryname.Canonical(host)] }
