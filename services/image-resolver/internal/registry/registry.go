// SPDX-License-Identifier: Apache-2.0

// Package registry is a client of image registries. It sends credentials only to the registry to which they belong,
// uses TLS unless the settings list the registry as insecure, and limits the size of answers. Errors hide secrets.
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
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
)

// Credentials finds the credentials for the repositories of registries. Package credentials implements it.
type Credentials interface {
	// Lookup returns the credential for a repository. It is zero if no credential is configured.
	Lookup(ctx context.Context, repository string) (credentials.Credential, error)
	// Renew is like Lookup, but uses no cached data. Callers use it after the registry rejected a credential.
	Renew(ctx context.Context, repository string) (credentials.Credential, error)
}

// Config configures a Client.
type Config struct {
	// Transport sends requests, with the certificates and the proxy for the host of each request.
	Transport   http.RoundTripper
	Credentials Credentials
	// Insecure lists the registries, as host or host:port, that may use plain HTTP.
	Insecure []string
	// Local lists registries that may be at local addresses, in addition to the registries in Insecure and the mirrors.
	Local []string
	// PublicOnly forbids registries at private addresses, except mirrors and the registries in Insecure and Local.
	PublicOnly bool
	// Mirrors maps registries to the mirrors that are tried before them. A key is a host, host:port, or the beginning of a
	// repository's name, such as gcr.io/kpt-fn. In image names at the mirror, the mirror replaces the key.
	Mirrors map[string][]string
	// Concurrent is the maximum total number of concurrent fetches. A single registry may use an eighth of it.
	Concurrent int64
	// Lookup resolves the host name of a registry to IP addresses. It defaults to net.DefaultResolver.LookupNetIP.
	Lookup    func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Telemetry *telemetry.Telemetry
}

// Client sends requests to image registries and their mirrors.
type Client struct {
	cfg     Config
	limiter *limiter
	metrics *metrics
	// The maps plaintext, local and mirrors contain the settings Insecure, Local and Mirrors. Their keys are canonical
	// names. The map local also contains the insecure registries and the mirrors.
	plaintext map[string]bool
	local     map[string]bool
	mirrors   map[string][]string
}

// New returns a client.
func New(cfg Config) *Client {
	if cfg.Lookup == nil {
		cfg.Lookup = net.DefaultResolver.LookupNetIP
	}
	c := &Client{
		cfg: cfg, limiter: newLimiter(cfg.Concurrent), metrics: newMetrics(cfg.Telemetry),
		plaintext: make(map[string]bool), local: make(map[string]bool), mirrors: make(map[string][]string),
	}
	for _, host := range cfg.Insecure {
		c.plaintext[imagename.CanonicalRegistry(host)] = true
	}
	for _, host := range slices.Concat(cfg.Insecure, cfg.Local) {
		c.local[imagename.CanonicalRegistry(host)] = true
	}
	for _, host := range slices.Sorted(maps.Keys(cfg.Mirrors)) {
		name := canonicalPrefix(strings.TrimRight(host, "/"))
		c.mirrors[name] = append(c.mirrors[name], cfg.Mirrors[host]...)
		for _, mirror := range cfg.Mirrors[host] {
			address, _, _ := strings.Cut(mirror, "/")
			c.local[imagename.CanonicalRegistry(address)] = true
		}
	}
	return c
}

// With calls the callback use with a session for a repository, such as "docker.io/library/busybox". It tries each
// mirror, and then the registry, until a call succeeds. Errors of the callback keep their class. Other errors are of
// class fault.Precondition if the registry rejected a request, and of class fault.Unavailable if it did not answer.
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

// isLocalFailure reports whether an error is about a file of this machine, for example because the disk is full. Such
// an error would occur with every mirror and with the registry, so a retry there is useless.
func isLocalFailure(err error) bool {
	_, ofFile := errors.AsType[*fs.PathError](err)
	return ofFile || DiskFailure(err) != nil
}

// DiskFailure returns the system error in err if it affects all writes to a file system, such as ENOSPC for a full
// disk. It returns nil for other errors.
func DiskFailure(err error) error {
	for _, errno := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, errno) {
			return errno
		}
	}
	return nil
}

// withMirrors adds the errors of the mirrors to err, the error of the registry. The errors of the mirrors are first.
// They matter most at a site that cannot access the registry, and therefore depends on its mirrors.
func withMirrors(err error, missed []string) error {
	if len(missed) == 0 {
		return err
	}
	return fault.New(fault.Of(err), "%s; after that: %w", strings.Join(missed, "; "), err)
}

// canonicalPrefix returns the canonical spelling of a registry or repository prefix, to look up its mirrors.
func canonicalPrefix(prefix string) string {
	if !strings.Contains(prefix, "/") {
		return imagename.CanonicalRegistry(prefix)
	}
	return imagename.CanonicalRepository(prefix)
}

// sourcesOf returns the names of a repository in the order in which they are tried. Names at mirrors are first, and the
// repository's own name is last. Mirrors of longer prefixes precede other mirrors, because they are more specific.
func (c *Client) sourcesOf(repository string) []string {
	var all []string
	for end := len(repository); end > 0; end = strings.LastIndexByte(repository[:end], '/') {
		for _, mirror := range c.mirrors[canonicalPrefix(repository[:end])] {
			all = append(all, strings.TrimRight(mirror, "/")+repository[end:])
		}
	}
	return append(all, repository)
}

// useSource calls the callback use with a session at a mirror or at the registry itself. If last is false, this source
// may use only half of the remaining time. The rest is left for the next source.
func (c *Client) useSource(
	ctx context.Context, source string, last bool, use func(context.Context, *Session) error,
) (err error) {
	if deadline, ok := ctx.Deadline(); ok && !last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	// Look up the credential before waiting in the registry's queue, so that a hanging credential helper delays
	// only the registries for which it is configured.
	cred, err := c.cfg.Credentials.Lookup(ctx, source)
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(source, "/")
	slot, err := c.limiter.acquire(ctx, imagename.CanonicalRegistry(host))
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
	// Retry with a renewed credential. The old credential may have been replaced, or its token may have expired early.
	fresh, renewErr := c.cfg.Credentials.Renew(ctx, source)
	switch {
	case renewErr != nil:
		return renewErr
	case status == http.StatusForbidden && fresh.Auth == cred.Auth:
		return err // the credential is valid, but not for this repository
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

// isInsecure reports whether the settings permit plain HTTP for a host.
func (c *Client) isInsecure(host string) bool { return c.plaintext[imagename.CanonicalRegistry(host)] }

func (c *Client) isListed(host string) bool { return c.local[imagename.CanonicalRegistry(host)] }
