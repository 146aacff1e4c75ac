// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzTags reads lists of tags: nothing makes it panic, a list has its bounds, and what is
// JSON with one list is read as the standard library reads it.
func FuzzTags(f *testing.F) {
	f.Add([]byte(`{"name":"fn","tags":["v1","v1.0"]}`))
	f.Add([]byte(`{"tags":null,"more":{"tags":["x"]}}`))
	f.Add([]byte(`{"tags":["a"],"tags":[1]}`))
	f.Add([]byte(`{"tags":{"a":["b"]}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, page []byte) {
		var list tagList
		err := list.readPage(bytes.NewReader(page))
		if len(list.tags) > maxTags {
			t.Fatalf("%d tags, want at most %d", len(list.tags), maxTags)
		}
		var whole struct{ Tags []string }
		single := bytes.Count(bytes.ToLower(page), []byte("tags")) == 1 && bytes.Contains(page, []byte(`"tags"`))
		if err == nil && single && json.Unmarshal(page, &whole) == nil &&
			!slices.Equal(list.tags, unique(whole.Tags)) {
			t.Errorf("tags %q, want %q", list.tags, whole.Tags)
		}
	})
}

// unique returns tags in their order, each once.
func unique(tags []string) []string {
	var out []string
	for _, tag := range tags {
		if !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

// FuzzNextPage reads Link headers: a list goes on where it began, or not at all.
func FuzzNextPage(f *testing.F) {
	f.Add(`</v2/fn/tags/list?last=v1&n=1000>; rel="next"`)
	f.Add(`<https://elsewhere.example/v2/fn/tags/list>; rel="next"`)
	f.Add(`<//elsewhere.example/v2/fn/tags/list>; rel="next"`)
	f.Add(`<http://u:p@registry.example/v2/fn/tags/list>`)
	f.Add(`<?last=v1>`)
	f.Add(`<`)
	f.Fuzz(func(t *testing.T, link string) {
		page := &url.URL{Scheme: "https", Host: "registry.example", Path: "/v2/fn/tags/list"}
		next, err := nextPage(page, []string{link})
		if err != nil || next == nil {
			return
		}
		if next.Scheme != page.Scheme || next.Host != page.Host || next.Path != page.Path {
			t.Errorf("from %v on to %v", page, next)
		}
	})
}

// FuzzReadable reads answers of proxies and the like: what users are shown of them is one
// line that terminals only show.
func FuzzReadable(f *testing.F) {
	f.Add([]byte("<html><head><title>Log in</title><script>x</script></head><body>Please"), "text/html")
	f.Add([]byte(`{"error":"no","token":"eyJhbGciOiJ"}`), "application/json")
	f.Add([]byte("\x1b[31mno\xff\nway"), "")
	f.Fuzz(func(t *testing.T, content []byte, contentType string) {
		text := firstBytes(new(secrets).hideIn(readableText(content, contentType)), maxSaid)
		if len(text) > maxSaid+len(" …") || !utf8.ValidString(text) {
			t.Errorf("%d bytes of text, want at most %d in UTF-8: %q", len(text), maxSaid, text)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }) {
			t.Errorf("text %q, want printable characters only", text)
		}
	})
}
