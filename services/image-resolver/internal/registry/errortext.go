// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

const (
	// maxRead bounds what is read of an error answer, in bytes. The
	// library reads no more either, and forgets the status then.
	maxRead = 32 << 10
	// errorReadTimeout bounds how long that may take. What has come until then has to do.
	errorReadTimeout = 2 * time.Second
	// maxSaid bounds what is kept of an answer that is not in the format of registries.
	maxSaid = 300
)

// abridge replaces the body of an error answer by the text that a user would read of it:
// proxies send whole pages, and some do not end. One in the
// format of registries stays.
func (s *secrets) abridge(resp *http.Response) {
	body := resp.Body
	giveUp := time.AfterFunc(errorReadTimeout, func() { _ = body.Close() })
	content, err := io.ReadAll(io.LimitReader(body, maxRead))
	giveUp.Stop()
	_ = body.Close()
	var known struct{ Errors []any }
	if json.Unmarshal(content, &known) != nil || len(known.Errors) == 0 {
		text := readable(content, resp.Header.Get("Content-Type"))
		if len(content) == maxRead || err != nil {
			text = text[:max(0, strings.LastIndexByte(text, ' '))] // half a word may be half a secret
		}
		content = []byte(beginning(s.hide(text), maxSaid))
	}
	resp.Body = io.NopCloser(bytes.NewReader(content))
	resp.ContentLength = int64(len(content))
}

// readable returns the words of an answer, on one line.
func readable(content []byte, contentType string) string {
	var text string
	switch {
	case isPage(content, contentType):
		text = pageText(content)
	case json.Valid(content):
		text = jsonText(content)
	default:
		text = string(content)
	}
	words := strings.FieldsFunc(
		strings.ToValidUTF8(text, "?"),
		func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) },
	)
	return strings.Join(words, " ")
}

// isPage reports whether an answer is for browsers.
func isPage(content []byte, contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return kind == "text/html" || kind == "application/xhtml+xml" ||
		bytes.HasPrefix(bytes.TrimSpace(content), []byte("<"))
}

// unread are the elements of pages whose content is not for readers.
var unread = map[string]bool{"script": true, "style": true, "noscript": true, "template": true, "svg": true}

// pageText returns the text of a page, from its title on.
func pageText(page []byte) string {
	var text strings.Builder
	in := html.NewTokenizer(bytes.NewReader(page))
	hidden := ""
	for {
		switch in.Next() {
		case html.ErrorToken: // the end, perhaps in the middle
			return text.String()
		case html.StartTagToken:
			if name, _ := in.TagName(); hidden == "" && unread[string(name)] {
				hidden = string(name)
			}
		case html.EndTagToken:
			name, _ := in.TagName()
			if string(name) == hidden {
				hidden = ""
			}
			text.WriteByte(' ')
		case html.TextToken:
			if hidden == "" {
				text.Write(in.Text())
			}
		default:
		}
	}
}

// jsonText returns the texts in a JSON value, with the names of its fields.
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

// beginning returns what fits of a text, and a sign if that is not all. It cuts no
// character.
func beginning(text string, limit int) string {
	start, all := excerpt.Start(text, limit)
	if all {
		return text
	}
	return start + " …"
}
