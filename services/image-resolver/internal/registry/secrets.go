// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
)

// secrets are the texts that must not leave a session: registries and token
// servers may well repeat in an error what they were sent.
type secrets struct {
	mu    sync.Mutex
	texts []string
}

func (s *secrets) add(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range texts {
		if t == "" {
			continue
		}
		for _, form := range []string{t, url.QueryEscape(t)} {
			if !slices.Contains(s.texts, form) {
				s.texts = append(s.texts, form)
			}
		}
	}
}

// addCredential adds all that is secret in a credential.
func (s *secrets) addCredential(auth authn.AuthConfig) {
	s.add(auth.Password, auth.Auth, auth.IdentityToken, auth.RegistryToken)
	if auth.Username != "" {
		s.add(base64.StdEncoding.EncodeToString([]byte(auth.Username + ":" + auth.Password)))
	}
}

// addHeader adds the secret in an Authorization header.
func (s *secrets) addHeader(value string) {
	_, secret, _ := strings.Cut(value, " ")
	s.add(secret)
}

// maxToken bounds what is read of a token server's answer.
const maxToken = 64 << 10

// tokenError is an answer of a token server that is of no use. It quotes nothing of it:
// there may be a token in an unexpected field.
type tokenError struct{ host, contentType string }

func (e *tokenError) Error() string {
	return fmt.Sprintf(
		"the token server %s answered, and not with a token (HTTP 200, content of type %q)",
		e.host,
		e.contentType,
	)
}

// learn adds the tokens in a token server's answer, and leaves nothing but them in it.
func (s *secrets) learn(host string, resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err != nil {
		return err
	}
	var tokens struct {
		Token        string `json:"token,omitempty"`
		AccessToken  string `json:"access_token,omitempty"`
		RefreshToken string `json:"refresh_token,omitempty"`
	}
	if json.Unmarshal(content, &tokens) != nil || tokens.Token == "" && tokens.AccessToken == "" {
		return &tokenError{host: host, contentType: beginning(resp.Header.Get("Content-Type"), 100)}
	}
	s.add(tokens.Token, tokens.AccessToken, tokens.RefreshToken)
	content, err = json.Marshal(tokens)
	resp.Body = io.NopCloser(bytes.NewReader(content))
	resp.ContentLength = int64(len(content))
	return err
}

// What is secret by its look. In URLs, also relative ones, queries hold signatures and
// user parts hold passwords. A server that repeats a header may change it or cut it off, and
// tokens have one beginning. The library quotes what is no token, and may be one.
var looks = []struct {
	secret *regexp.Regexp
	shown  string
}{
	{regexp.MustCompile(`\?[^\s"'<>?]*=[^\s"'<>]*`), ""},
	{regexp.MustCompile(`://[^/\s@"]+@`), "://[hidden]@"},
	{regexp.MustCompile(`(?i)(authorization["']?\s*[:=]?\s*\[?["']?(?:basic|bearer)?)\s+[^\s"',\]]+`), "$1 [hidden]"},
	{regexp.MustCompile(`\beyJ[\w-]{8,}[\w.-]*`), "[hidden]"},
	{regexp.MustCompile(`(?s)(no token in bearer response):.*`), "$1"},
}

// hide returns text without any secret.
func (s *secrets) hide(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The longest first: one secret may be a part of another.
	texts := slices.SortedFunc(slices.Values(s.texts), func(a, b string) int { return len(b) - len(a) })
	for _, t := range texts {
		text = strings.ReplaceAll(text, t, "[hidden]")
	}
	for _, look := range looks {
		text = look.secret.ReplaceAllString(text, look.shown)
	}
	return text
}
