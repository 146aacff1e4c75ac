// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/redact"
)

// secrets are the texts that must not leave a session. We hide them because registries and token servers may repeat
// requests in their errors.
type secrets []string

func (s *secrets) add(texts ...string) {
	for _, text := range texts {
		for _, form := range []string{text, url.QueryEscape(text)} {
			if form != "" && !slices.Contains(*s, form) {
				*s = append(*s, form)
			}
		}
	}
}

func (s *secrets) addCredential(auth authn.AuthConfig) {
	s.add(auth.Password, auth.Auth, auth.IdentityToken, auth.RegistryToken)
	if auth.Username != "" {
		s.add(base64.StdEncoding.EncodeToString([]byte(auth.Username + ":" + auth.Password)))
	}
}

// hideIn returns text without any secret.
func (s *secrets) hideIn(text string) string {
	// Replace the longest secret first, because a secret may be a part of a longer secret.
	for _, secret := range slices.SortedFunc(slices.Values(*s), func(a, b string) int { return len(b) - len(a) }) {
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	return redact.Text(text)
}
