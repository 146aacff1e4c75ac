package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
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

// learn adds the tokens in a token server's answer, and returns the answer anew.
func (s *secrets) learn(body io.ReadCloser) io.ReadCloser {
	content, err := io.ReadAll(io.LimitReader(body, maxToken))
	var fields map[string]any
	if json.Unmarshal(content, &fields) == nil {
		for key, value := range fields {
			if text, ok := value.(string); ok && strings.Contains(key, "token") {
				s.add(text)
			}
		}
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(content), failing{err}), body}
}

// failing is a reader that has nothing but an error, or the end.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil || errors.Is(f.err, io.EOF) {
		return 0, io.EOF
	}
	return 0, f.err
}

// In URLs, queries hold signatures and user parts hold passwords.
var (
	query    = regexp.MustCompile(`(https?://[^\s"?]*)\?[^\s"]*`)
	userPart = regexp.MustCompile(`://[^/\s@"]+@`)
)

// hide returns text without any secret.
func (s *secrets) hide(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The longest first: one secret may be a part of another.
	texts := slices.SortedFunc(slices.Values(s.texts), func(a, b string) int { return len(b) - len(a) })
	for _, t := range texts {
		text = strings.ReplaceAll(text, t, "[hidden]")
	}
	text = query.ReplaceAllString(text, "$1")
	return userPart.ReplaceAllString(text, "://[hidden]@")
}
