// SPDX-License-Identifier: Apache-2.0

package tokenreview

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// maxAnswerBytes bounds an answer of the Kubernetes API.
	maxAnswerBytes = 1 << 20
	// idleTimeout is how long an unused connection to it stays open.
	idleTimeout = time.Minute
	// shownBytes bounds what an error shows of its answer.
	shownBytes = 200
)

// api sends TokenReviews. It is one request of the Kubernetes API, and client-go would double the
// gateway.
type api struct {
	address   string
	directory string
	audiences []string

	mu        sync.Mutex
	authority []byte // what transport trusts
	transport *http.Transport
}

// review is a TokenReview, as far as it is used.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Token     string   `json:"token"`
		Audiences []string `json:"audiences"`
	} `json:"spec"`
	Status struct {
		Authenticated bool     `json:"authenticated"`
		Audiences     []string `json:"audiences"`
		User          struct {
			Username string   `json:"username"`
			Groups   []string `json:"groups"`
		} `json:"user"`
	} `json:"status"`
}

// ask returns whose token it is. The error for a token that is not valid has the class Denied. Others are failures of
// the API, with details that are not for callers.
func (a *api) ask(ctx context.Context, token string) (caller.Identity, error) {
	answer, err := a.send(ctx, token)
	if err != nil {
		return caller.Identity{}, err
	}
	status := answer.Status
	ours := func(audience string) bool { return slices.Contains(a.audiences, audience) }
	switch {
	case !status.Authenticated || status.User.Username == "":
		return caller.Identity{}, fault.New(fault.Denied, "the token is not valid")
	case !slices.ContainsFunc(status.Audiences, ours):
		return caller.Identity{}, fault.New(fault.Denied, "the token is not for the audience %s",
			strings.Join(a.audiences, " or "))
	}
	identity := caller.Identity{ID: status.User.Username, Groups: status.User.Groups, Kind: caller.Token}
	if !identity.Bounded() {
		return caller.Identity{}, fault.New(fault.Denied, "the token's user has a name or groups that are too long")
	}
	return identity, nil
}

// send sends one TokenReview with the credentials of this pod.
func (a *api) send(ctx context.Context, token string) (*review, error) {
	own, err := os.ReadFile(filepath.Join(a.directory, "token"))
	if err != nil {
		return nil, err
	}
	transport, err := a.connect()
	if err != nil {
		return nil, err
	}
	req, err := a.question(ctx, token)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(own)))
	resp, err := transport.RoundTrip(req) // no redirects: the token goes to the API only
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return read(resp)
}

// question returns the request that asks about a token, without the credentials of this pod.
func (a *api) question(ctx context.Context, token string) (*http.Request, error) {
	question := review{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
	question.Spec.Token, question.Spec.Audiences = token, a.audiences
	body, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		a.address+"/apis/authentication.k8s.io/v1/tokenreviews", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// read reads the API's answer.
func read(resp *http.Response) (*review, error) {
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		// The answer to a request that is not permitted does not repeat the token.
		return nil, fmt.Errorf("%s: %s", resp.Status, excerpt.Middle(string(content), shownBytes))
	}
	answer := new(review)
	if err := json.Unmarshal(content, answer); err != nil {
		return nil, errors.New("the answer is not a TokenReview")
	}
	return answer, nil
}

// connect returns the connections to the API, which trust the authority that its file has now.
func (a *api) connect() (*http.Transport, error) {
	authority, err := os.ReadFile(filepath.Join(a.directory, "ca.crt"))
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.transport != nil && bytes.Equal(authority, a.authority) {
		return a.transport, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s", filepath.Join(a.directory, "ca.crt"))
	}
	a.closeIdle()
	a.authority, a.transport = authority, &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout, MaxConnsPerHost: maxReviews,
	}
	return a.transport, nil
}

// closeIdle closes connections that are not in use. Its caller holds the lock, or is the last one.
func (a *api) closeIdle() {
	if a.transport != nil {
		a.transport.CloseIdleConnections()
	}
}
