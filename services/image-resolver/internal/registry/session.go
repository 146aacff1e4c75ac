// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// Session is the requests to one registry about one repository. It ends with
// the function that it was given to.
type Session struct {
	repo  name.Repository
	guard *guard
	cred  credentials.Credential
	http  *http.Client
}

// open begins a session.
func (c *Client) open(
	ctx context.Context,
	slot *slot,
	repository string,
	cred credentials.Credential,
) (*Session, error) {
	host, _, _ := strings.Cut(repository, "/")
	options := []name.Option{name.StrictValidation}
	if c.insecure(host) {
		options = append(options, name.Insecure)
	}
	repo, err := name.NewRepository(repository, options...)
	if err != nil {
		return nil, fault.New(fault.Invalid, "repository %q: %w", repository, err)
	}
	s := &Session{repo: repo, cred: cred, guard: newGuard(c, slot, repo, cred)}
	return s, s.login(ctx)
}

// login finds out the registry's scheme and authentication, and gets a token if there is a token server.
func (s *Session) login(ctx context.Context) error {
	auth := authn.FromConfig(s.cred.Auth)
	if s.cred.IsZero() {
		auth = authn.Anonymous
	}
	retrying := &retrier{next: s.guard, attempts: attempts, failed: s.failed}
	scopes := []string{s.repo.Scope(transport.PullScope)}
	rt, err := transport.NewWithContext(ctx, s.repo.Registry, auth, retrying, scopes)
	if err != nil {
		return s.explain(ctx, "log in", err)
	}
	s.http = &http.Client{Transport: rt}
	return nil
}

// failed reports the error of an attempt to the callers, whose time may be over before the last
// attempt.
func (s *Session) failed(req *http.Request, resp *http.Response, err error) {
	if resp != nil {
		err = transport.CheckError(resp)
	}
	cache.Progress(req.Context(), s.explain(req.Context(), doing(req), err))
}

// doing returns what a request is for, for errors.
func doing(req *http.Request) string {
	switch op := operation(req); op {
	case opPing, opToken:
		return "log in"
	default:
		return strings.ToLower(req.Method) + " " + op
	}
}

// WantedCredentials reports whether the registry required credentials and got some.
func (s *Session) WantedCredentials() bool { return !s.cred.IsZero() && s.guard.challenged.Load() }

// Head returns the digest of the manifest that a tag points at, or "" if the
// registry does not send it.
func (s *Session) Head(ctx context.Context, tag string) (string, error) {
	resp, err := s.send(ctx, http.MethodHead, s.url("manifests", tag))
	if err != nil {
		return "", err
	}
	_ = resp.Body.Close()
	return resp.Header.Get("Docker-Content-Digest"), nil
}

// Manifest returns the manifest that a tag or digest names. One that does not have
// the digest asked for is an error.
func (s *Session) Manifest(ctx context.Context, reference string) (*oci.Manifest, error) {
	raw, mediaType, err := s.read(ctx, s.url("manifests", reference))
	if err != nil {
		return nil, err
	}
	if strings.Contains(reference, ":") {
		if err := verify(raw, reference, "manifest"); err != nil {
			return nil, err
		}
	}
	return oci.ParseManifest(mediaType, raw)
}

// Blob returns the content with a digest.
func (s *Session) Blob(ctx context.Context, digest string) ([]byte, error) {
	raw, _, err := s.read(ctx, s.url("blobs", digest))
	if err != nil {
		return nil, err
	}
	return raw, verify(raw, digest, "blob")
}

// verify rejects content that does not have its digest.
func verify(raw []byte, digest, what string) error {
	if !strings.HasPrefix(digest, "sha256:") {
		return fault.New(fault.Precondition, "the %s has the digest %s: only sha256 is supported", what, digest)
	}
	if got := oci.Digest(raw); got != digest {
		return fault.New(
			fault.Precondition,
			"the registry answered with the %s %s where %s was asked for: something on the way is broken, or tampers with it",
			what,
			got,
			digest,
		)
	}
	return nil
}

// url returns the address of a resource. The transport replaces the scheme
// by the registry's.
func (s *Session) url(kind, identifier string) *url.URL {
	return &url.URL{
		Scheme: "https", Host: s.repo.RegistryStr(),
		Path: fmt.Sprintf("/v2/%s/%s/%s", s.repo.RepositoryStr(), kind, identifier),
	}
}

// read returns the whole answer to a GET and its media type. One that breaks off is asked
// for once more.
func (s *Session) read(ctx context.Context, u *url.URL) (raw []byte, contentType string, err error) {
	raw, contentType, err = s.readOnce(ctx, u)
	if _, ok := errors.AsType[brokenOff](err); ok && ctx.Err() == nil {
		return s.readOnce(ctx, u)
	}
	return raw, contentType, err
}

// brokenOff is an answer that began well, and may be whole the next time.
type brokenOff struct{ error }

func (b brokenOff) Unwrap() error { return b.error }

func (s *Session) readOnce(ctx context.Context, u *url.URL) (raw []byte, contentType string, err error) {
	resp, err := s.send(ctx, http.MethodGet, u)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if raw, err = io.ReadAll(resp.Body); err != nil {
		explained := s.explain(ctx, "read the answer", err)
		if worthRetrying(nil, err) {
			return nil, "", brokenOff{explained}
		}
		return nil, "", explained
	}
	contentType = resp.Header.Get("Content-Type")
	if isPage(raw, contentType) {
		asked := origin(resp.Request)
		return nil, "", s.explain(
			ctx,
			doing(asked),
			&pageError{operation(asked), beginning(readable(raw, contentType), maxSaid)},
		)
	}
	return raw, contentType, nil
}

// send returns the answer with status 200 to a request. The caller closes its
// body.
func (s *Session) send(ctx context.Context, method string, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, fault.New(fault.Invalid, "make a request to %s: %w", s.repo.RegistryStr(), err)
	}
	if strings.Contains(u.Path, "/manifests/") {
		req.Header.Set("Accept", strings.Join(oci.MediaTypes, ", "))
	}
	op := doing(req)
	resp, err := s.http.Do(req)
	if err == nil {
		if late := s.guard.lateChallenge(req, resp); late != nil {
			_ = resp.Body.Close()
			s.guard.late = late
			if err := s.login(ctx); err != nil {
				return nil, err
			}
			resp, err = s.http.Do(req)
		}
	}
	if err != nil {
		return nil, s.explain(ctx, op, err)
	}
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		_ = resp.Body.Close()
		return nil, s.explain(ctx, op, err)
	}
	return resp, nil
}
