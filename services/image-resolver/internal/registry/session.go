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

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// Session sends requests about a single repository to a single registry. Only a single goroutine may use a Session.
// A Session is valid only until the function that was passed to [Client.With] returns.
type Session struct {
	repo    name.Repository
	cred    credentials.Credential
	guard   *guard
	retrier *retrier
	http    *http.Client
	// scheme is the protocol of the registry, https or http. It is empty until the registry has answered a ping.
	scheme string
	// headers contains the Authorization headers of requests, by the host of the request.
	headers map[string]string
}

func (c *Client) openSession(
	ctx context.Context, slot *slot, repository string, cred credentials.Credential,
) (*Session, error) {
	repo, err := name.NewRepository(repository, name.StrictValidation)
	if err != nil {
		return nil, fault.New(fault.Invalid, "repository %q: %w", repository, err)
	}
	s := &Session{repo: repo, cred: cred, headers: make(map[string]string)}
	s.guard = &guard{client: c, slot: slot, host: repo.RegistryStr()}
	s.guard.secrets.addCredential(cred.Auth)
	s.retrier = &retrier{next: s.guard, failed: s.reportAttempt}
	s.http = &http.Client{Transport: &authorizer{s.retrier, s.headers}}
	return s, s.login(ctx)
}

// reportAttempt records the error of a failed attempt before a retry. Callers whose deadline passes during the retry
// get this error instead of a timeout.
func (s *Session) reportAttempt(req *http.Request, resp *http.Response, err error) {
	if resp != nil {
		err = transport.CheckError(resp)
	}
	cache.Progress(req.Context(), s.explainError(req.Context(), purposeOf(req).describe(req.Method), err))
}

// WantedCredentials reports whether the registry required credentials and this session sent credentials.
func (s *Session) WantedCredentials() bool { return !s.cred.IsZero() && s.guard.challenged }

// Head returns the digest of the manifest with the given tag or digest, or an empty string if the registry sends none.
func (s *Session) Head(ctx context.Context, reference string) (string, error) {
	resp, err := s.sendRequest(ctx, purpose{op: opManifest}, http.MethodHead, s.resourceURL("manifests", reference))
	if err != nil {
		return "", err
	}
	_ = resp.Body.Close()
	return resp.Header.Get("Docker-Content-Digest"), nil
}

// Manifest returns the manifest with the given tag or digest. If reference is a digest, it verifies the content.
func (s *Session) Manifest(ctx context.Context, reference string) (*oci.Manifest, error) {
	raw, mediaType, err := s.readAnswer(ctx, purpose{op: opManifest}, s.resourceURL("manifests", reference))
	if err != nil {
		return nil, err
	}
	if strings.Contains(reference, ":") {
		if err := verifyDigest(raw, reference, "manifest"); err != nil {
			return nil, err
		}
	}
	return oci.ParseManifest(mediaType, raw)
}

// Blob returns the content with the given digest, such as an image's configuration, and verifies it.
func (s *Session) Blob(ctx context.Context, digest string) ([]byte, error) {
	raw, _, err := s.readAnswer(ctx, purpose{op: opBlob}, s.resourceURL("blobs", digest))
	if err != nil {
		return nil, err
	}
	return raw, verifyDigest(raw, digest, "blob")
}

// verifyDigest returns an error unless digest is the SHA-256 digest of raw. The last argument names the content in
// errors.
func verifyDigest(raw []byte, digest, what string) error {
	if !strings.HasPrefix(digest, "sha256:") {
		return fault.New(fault.Precondition, "the %s has the digest %s: only sha256 is supported", what, digest)
	}
	if got := oci.Digest(raw); got != digest {
		return fault.New(fault.Precondition, "the registry returned the %s %s instead of %s: "+
			"something on the way is broken, or tampers with it", what, got, digest)
	}
	return nil
}

// Layer passes the compressed content of a layer to the callback read, which must limit its size and verify its digest.
// Connection errors contain advice for users. The errors of the callback stay unchanged.
func (s *Session) Layer(ctx context.Context, digest string, read func(io.Reader) error) error {
	resp, err := s.sendRequest(ctx, purpose{op: opBlob, layer: true}, http.MethodGet, s.resourceURL("blobs", digest))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	s.guard.slot.recordAnswer()
	body := &layerBody{Reader: resp.Body}
	err = read(body)
	if body.err != nil {
		return s.explainError(ctx, "read the layer "+digest, unreachableError{body.err})
	}
	return err
}

// layerBody records the error that interrupted the download of a layer, to distinguish it from errors of the function
// that reads the layer, such as a full disk.
type layerBody struct {
	io.Reader
	err error
}

func (b *layerBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

func (s *Session) resourceURL(kind, identifier string) *url.URL {
	return &url.URL{
		Scheme: s.scheme, Host: s.guard.host,
		Path: fmt.Sprintf("/v2/%s/%s/%s", s.repo.RepositoryStr(), kind, identifier),
	}
}

// readAnswer sends a GET request and returns the whole answer with its media type. If the answer is interrupted,
// readAnswer sends the request once more.
func (s *Session) readAnswer(ctx context.Context, p purpose, u *url.URL) (raw []byte, contentType string, err error) {
	for attempt := 1; ; attempt++ {
		resp, err := s.sendRequest(ctx, p, http.MethodGet, u)
		if err != nil {
			return nil, "", err
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			if attempt == 1 && ctx.Err() == nil && worthRetrying(nil, err) {
				continue
			}
			return nil, "", s.explainError(ctx, "read the answer", err)
		}
		contentType := resp.Header.Get("Content-Type")
		if isPage(raw, contentType) {
			page := &pageError{p.op, firstBytes(readableText(raw, contentType), maxSaid)}
			return nil, "", s.explainError(ctx, p.describe(http.MethodGet), page)
		}
		return raw, contentType, nil
	}
}

// sendRequest sends a request and returns the answer with status 200. Other statuses are errors. If the server
// requires a new token, sendRequest fetches one and sends the request again. Callers must close the body.
func (s *Session) sendRequest(ctx context.Context, p purpose, method string, u *url.URL) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		req, err := http.NewRequestWithContext(context.WithValue(ctx, purposeKey{}, p), method, u.String(), nil)
		if err != nil {
			return nil, fault.New(fault.Invalid, "make a request to %s: %w", s.guard.host, err)
		}
		if p.op == opManifest {
			req.Header.Set("Accept", strings.Join(oci.MediaTypes, ", "))
		}
		resp, err := s.http.Do(req)
		if err != nil {
			return nil, s.explainError(ctx, p.describe(method), err)
		}
		required := parseChallenge(resp.Header)
		if resp.StatusCode == http.StatusUnauthorized && required.scheme == schemeBearer && attempt == 1 {
			_ = resp.Body.Close()
			if err := s.answerChallenge(ctx, resp.Request.URL.Host, required); err != nil {
				return nil, s.explainError(ctx, "log in", err)
			}
			continue
		}
		if err := transport.CheckError(resp, http.StatusOK); err != nil {
			_ = resp.Body.Close()
			return nil, s.explainError(ctx, p.describe(method), err)
		}
		return resp, nil
	}
}
