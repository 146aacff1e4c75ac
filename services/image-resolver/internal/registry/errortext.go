// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/redact"
)

const (
	// maxRead is the maximum number of bytes that we read from the body of an error answer.
	maxRead = 32 << 10
	// errorReadTimeout limits the time to read an error answer. Then we quote the part that has arrived.
	errorReadTimeout = 2 * time.Second
	// maxSaid limits our quote of an error answer that is not in the JSON format of registries, in bytes.
	maxSaid = 300
)

// abridgeBody replaces the body of an error answer with its readable text, because proxies send whole web pages as
// errors, and some bodies never end. A body in the JSON format of registry errors stays unchanged.
func (s *secrets) abridgeBody(resp *http.Response) {
	body := resp.Body
	giveUp := time.AfterFunc(errorReadTimeout, func() { _ = body.Close() })
	content, err := io.ReadAll(io.LimitReader(body, maxRead))
	giveUp.Stop()
	_ = body.Close()
	var known struct{ Errors []any }
	if json.Unmarshal(content, &known) != nil || len(known.Errors) == 0 {
		text := readableText(content, resp.Header.Get("Content-Type"))
		if len(content) == maxRead || err != nil {
			text = text[:max(0, strings.LastIndexByte(text, ' '))] // the last word may be half a secret, unknown to hideIn
		}
		content = []byte(firstBytes(s.hideIn(text), maxSaid))
	}
	resp.Body = io.NopCloser(bytes.NewReader(content))
	resp.ContentLength = int64(len(content))
}

// markup matches the parts of an HTML page that browsers do not show, such as tags and scripts. The last part may
// be incomplete, because the page may be cut off.
var markup = regexp.MustCompile(`(?is)<!--.*?(-->|$)|<(script|style|noscript|template|svg)\b.*?` +
	`(</(script|style|noscript|template|svg)\s*>|$)|<[^>]*(>|$)`)

// readableText returns the words of an answer on a single line. The answer may be HTML, JSON or plain text.
func readableText(content []byte, contentType string) string {
	text := string(content)
	switch {
	case isPage(content, contentType):
		text = html.UnescapeString(markup.ReplaceAllString(text, " "))
	case json.Valid(content):
		text = jsonText(content)
	}
	return redact.Line(text)
}

// isPage reports whether an answer is a web page for browsers, and not an answer of a registry.
func isPage(content []byte, contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind == "text/html" || kind == "application/xhtml+xml" ||
		bytes.HasPrefix(bytes.TrimSpace(content), []byte("<"))
}

// jsonText returns all strings in a JSON value, including the names of fields.
func jsonText(value []byte) string {
	var text strings.Builder
	in := json.NewDecoder(bytes.NewReader(value))
	for {
		token, err := in.Token()
		if err != nil {
			return text.String()
		}
		if s, ok := token.(string); ok {
			text.WriteString(s + " ")
		}
	}
}

// firstBytes shortens a text of more than limit bytes and appends an ellipsis. It never splits a character.
func firstBytes(text string, limit int) string {
	start, all := excerpt.Start(text, limit)
	if all {
		return text
	}
	return start + " …"
}

// secrets contains passwords, tokens and other texts to hide in error messages. These messages quote registries and
// token servers, whose answers may repeat the credentials of a request.
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

// hideIn returns text without the secrets in s, and without other parts that look like secrets.
func (s *secrets) hideIn(text string) string {
	// Replace the longest secret first, because it may contain a shorter secret.
	for _, secret := range slices.SortedFunc(slices.Values(*s), func(a, b string) int { return len(b) - len(a) }) {
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	return redact.Text(text)
}
