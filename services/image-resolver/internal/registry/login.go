// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

const (
	// tokenTimeout bounds the wait for an answer of a token server. It is shorter than the timeouts of callers. Callers
	// thus receive an error that names the slow token server, instead of their own timeout.
	tokenTimeout = 8 * time.Second
	// maxToken is the maximum number of bytes that we read from the answer of a token server.
	maxToken     = 64 << 10
	schemeHTTPS  = "https"
	schemeBearer = "bearer"
	// clientID is the OAuth 2.0 client_id in requests to token servers.
	clientID = "function-runner"
)

// challenge is the authentication that a registry requires in its WWW-Authenticate header. The zero challenge means
// that the registry requires no authentication.
type challenge struct{ scheme, realm, service, scope string }

// parseChallenge returns the authentication that a registry requires in its WWW-Authenticate headers. If there are
// several challenges, it returns the Bearer challenge if possible, and otherwise the first challenge.
func parseChallenge(header http.Header) (chosen challenge) {
	var all []challenge
	for _, part := range splitHeader(header.Values("WWW-Authenticate"), ',') {
		scheme, rest, _ := strings.Cut(part, " ")
		if !strings.Contains(scheme, "=") && !strings.HasPrefix(strings.TrimSpace(rest), "=") {
			all = append(all, challenge{scheme: strings.ToLower(scheme)})
			part = rest
		}
		if len(all) == 0 {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		value = strings.ReplaceAll(strings.Trim(strings.TrimSpace(value), `"`), `\`, "")
		switch last := &all[len(all)-1]; strings.ToLower(strings.TrimSpace(key)) {
		case "realm":
			last.realm = value
		case "service":
			last.service = value
		case "scope":
			last.scope = value
		}
	}
	for _, c := range all {
		if c.scheme == schemeBearer {
			return c
		}
		if chosen.scheme == "" {
			chosen = c
		}
	}
	return chosen
}

// login determines the registry's protocol and required authentication, and fetches a token if necessary. If TLS fails
// and the settings list the registry as insecure, login tries plain HTTP. An untrusted certificate is an exception:
// login then returns an error.
func (s *Session) login(ctx context.Context) error {
	required, err := s.pingRegistry(ctx, schemeHTTPS)
	if err != nil && s.guard.client.isInsecure(s.guard.host) && !isDistrust(err) && ctx.Err() == nil {
		required, err = s.pingRegistry(ctx, "http")
	}
	if err == nil {
		err = s.answerChallenge(ctx, s.guard.host, required)
	}
	if err != nil {
		return s.explainError(ctx, "log in", err)
	}
	return nil
}

func (s *Session) pingRegistry(ctx context.Context, scheme string) (challenge, error) {
	tentative := scheme == schemeHTTPS && s.guard.client.isInsecure(s.guard.host)
	ctx = context.WithValue(ctx, purposeKey{}, purpose{op: opPing, tentative: tentative})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+s.guard.host+"/v2/", nil)
	if err != nil {
		return challenge{}, err
	}
	resp, err := (&http.Client{Transport: s.retrier}).Do(req)
	if err != nil {
		return challenge{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := transport.CheckError(resp, http.StatusOK, http.StatusUnauthorized); err != nil {
		return challenge{}, err
	}
	s.scheme = scheme
	return parseChallenge(resp.Header), nil
}

// answerChallenge sets the Authorization header for later requests to host, in the form that the challenge requires.
// Only the registry itself receives credentials. A host to which the registry redirects receives no credentials.
func (s *Session) answerChallenge(ctx context.Context, host string, required challenge) error {
	auth := s.cred.Auth
	if host != s.guard.host {
		auth = authn.AuthConfig{}
	}
	switch {
	case auth.RegistryToken != "":
		s.headers[host] = "Bearer " + auth.RegistryToken
	case required.scheme == schemeBearer:
		token, err := s.fetchToken(ctx, required, auth)
		if err != nil {
			return err
		}
		s.headers[host] = "Bearer " + token
	default:
		s.headers[host] = basicHeader(auth)
	}
	return nil
}

// basicHeader returns the Authorization header for basic authentication. It is empty without user name and password.
func basicHeader(auth authn.AuthConfig) string {
	if auth.Username == "" && auth.Password == "" {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(auth.Username+":"+auth.Password))
}

// fetchToken fetches a token from the token server that the challenge names. It first sends the identity token in auth,
// if there is any. If the server does not support identity tokens, fetchToken sends the password instead.
func (s *Session) fetchToken(ctx context.Context, required challenge, auth authn.AuthConfig) (string, error) {
	realm, err := url.Parse(required.realm)
	if err != nil || (realm.Scheme != schemeHTTPS && (realm.Scheme != "http" || s.scheme != "http")) {
		return "", fmt.Errorf("its challenge has the realm %q, where the URL of a token server with https should stand",
			required.realm)
	}
	values := url.Values{"scope": s.tokenScopes(required)}
	if required.service != "" {
		values.Set("service", required.service)
	}
	ctx = context.WithValue(ctx, purposeKey{}, purpose{op: opToken})
	ctx, cancel := context.WithTimeoutCause(ctx, tokenTimeout, &slowError{host: realm.Host})
	defer cancel()
	token, err := "", error(nil)
	if auth.IdentityToken != "" {
		form := url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {auth.IdentityToken}, "client_id": {clientID},
			"scope": {strings.Join(values["scope"], " ")}, "service": {required.service},
		}
		token, err = s.requestToken(ctx, http.MethodPost, realm, form, "")
	}
	if auth.IdentityToken == "" || statusOf(err) == http.StatusNotFound {
		target := *realm
		query := target.Query()
		for key, value := range values {
			query[key] = append(query[key], value...)
		}
		target.RawQuery = query.Encode()
		token, err = s.requestToken(ctx, http.MethodGet, &target, nil, basicHeader(auth))
	}
	if slow, ok := context.Cause(ctx).(*slowError); ok && err != nil { //nolint:errorlint // the cause itself
		return "", unreachableError{slow}
	}
	return token, err
}

// tokenScopes returns the scopes to request from a token server. The registry's required scope is first, because some
// token servers read only the first scope. The scope in the answer to a ping is ignored, because it is a placeholder.
func (s *Session) tokenScopes(required challenge) []string {
	own := s.repo.Scope(transport.PullScope)
	if _, again := s.headers[s.guard.host]; again && required.scope != "" && required.scope != own {
		return []string{required.scope, own}
	}
	return []string{own}
}

// requestToken sends a single request to a token server and returns the token in the answer.
func (s *Session) requestToken(
	ctx context.Context, method string, target *url.URL, form url.Values, header string,
) (string, error) {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return "", err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := &http.Client{Transport: &authorizer{s.retrier, map[string]string{target.Host: header}}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return "", err
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err != nil {
		return "", err
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(content, &answer) != nil || (answer.Token == "" && answer.AccessToken == "") {
		return "", &tokenError{host: resp.Request.URL.Host, contentType: firstBytes(resp.Header.Get("Content-Type"), 100)}
	}
	s.guard.secrets.add(answer.Token, answer.AccessToken)
	if answer.AccessToken != "" {
		return answer.AccessToken, nil
	}
	return answer.Token, nil
}

// authorizer is an HTTP transport that sets the Authorization header of each request. It selects the header by the
// request's host, so that a redirect never sends the header of one host to a different host.
type authorizer struct {
	next    http.RoundTripper
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (a *authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Authorization") // may stem from an earlier redirect, or from the user in a URL
	if header := a.headers[req.URL.Host]; header != "" {
		req.Header.Set("Authorization", header)
	}
	return a.next.RoundTrip(req)
}

// tokenError is the error for an answer of a token server that contains no token. It does not quote the answer,
// because the token may be in an unexpected field.
type tokenError struct{ host, contentType string }

func (e *tokenError) Error() string {
	return fmt.Sprintf("the token server %s answered, and not with a token (HTTP 200, content of type %q)",
		e.host, e.contentType)
}

// slowError is the error for a token server that did not answer within tokenTimeout.
type slowError struct{ host string }

func (e *slowError) Error() string {
	return fmt.Sprintf("the token server %s has not answered within %v", e.host, tokenTimeout)
}
