// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// tagsPerPage is how many tags are asked for at a time; some registries refuse
	// more than 1000.
	tagsPerPage = 1000
	// maxTags bounds a list: some repositories have a tag for each commit, and a
	// hostile registry makes up any number.
	maxTags = 50_000
	// maxTagBytes bounds the text of a list. It is enough for that many signatures,
	// which have the longest tags in use.
	maxTagBytes = 4 << 20
)

// Tags lists the repository's tags.
func (s *Session) Tags(ctx context.Context) ([]string, error) {
	var list tagList
	next := s.url("tags", "list")
	next.RawQuery = "n=" + strconv.Itoa(tagsPerPage)
	for next != nil {
		resp, err := s.send(ctx, http.MethodGet, next)
		if err != nil {
			return nil, err
		}
		err = list.read(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return nil, s.explain(ctx, "list the tags", err)
		}
		if next, err = s.nextPage(next, resp.Header.Get("Link")); err != nil {
			return nil, err
		}
	}
	return list.tags, nil
}

// nextPage returns the address of the next page in a Link header, or nil. The
// list never leads to another host or path.
func (s *Session) nextPage(page *url.URL, link string) (*url.URL, error) {
	target, _, ok := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if !ok || target == "" {
		return nil, nil
	}
	next, err := page.Parse(target)
	if err != nil || next.Host != page.Host || next.Path != page.Path {
		return nil, fault.New(
			fault.Precondition,
			"registry %s: list the tags: the next page is said to be at a foreign address",
			s.repo.RegistryStr(),
		)
	}
	next.Scheme = page.Scheme
	return next, nil
}

// tagList is the tags of a repository as far as they are read.
type tagList struct {
	tags  []string
	bytes int
}

// read adds the tags of a page, one by one: a page is never held as a whole.
func (l *tagList) read(page io.Reader) error {
	in := json.NewDecoder(page)
	if err := expect(in, json.Delim('{')); err != nil {
		return err
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return err
		}
		if key == "tags" {
			err = l.readTags(in)
		} else {
			err = in.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	return expect(in, json.Delim('}'))
}

// readTags adds the tags of an array; null is one too.
func (l *tagList) readTags(in *json.Decoder) error {
	switch start, err := in.Token(); {
	case err != nil || start == nil:
		return err
	case start != json.Delim('['):
		return fmt.Errorf("the tags begin with %v, not as an array", start)
	}
	for in.More() {
		var tag string
		if err := in.Decode(&tag); err != nil {
			return err
		}
		if err := l.add(tag); err != nil {
			return err
		}
	}
	return expect(in, json.Delim(']'))
}

func (l *tagList) add(tag string) error {
	l.bytes += len(tag)
	if len(l.tags) == maxTags || l.bytes > maxTagBytes {
		return fmt.Errorf("the repository has more than %d tags or %d MiB of them, which is the limit: "+
			"name a tag in place of a version constraint, or delete old tags", maxTags, maxTagBytes>>20)
	}
	l.tags = append(l.tags, tag)
	return nil
}

// expect reads the next token, and returns an error if it is another than want.
func expect(in *json.Decoder, want json.Delim) error {
	got, err := in.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v stands where %v should", got, want)
	}
	return err
}
