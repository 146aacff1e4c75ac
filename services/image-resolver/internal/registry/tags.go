// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

const (
	// tagsPerPage is the number of tags to request in each page of a list. Some registries reject more than 1000.
	tagsPerPage = 1000
	// maxTags is the maximum number of tags in the list of a repository. Some repositories contain a tag for each
	// commit, and a hostile registry may send any number of tags.
	maxTags = 50_000
	// maxTagBytes is the maximum total length of the tags in a list. It suffices for maxTags tags of image signatures,
	// which are the longest tags in use.
	maxTagBytes = 4 << 20
	// maxPages limits the pages of a list of tags, because a registry may send empty pages without end.
	maxPages = 1000
)

// Tags lists the repository's tags.
func (s *Session) Tags(ctx context.Context) ([]string, error) {
	var list tagList
	next := s.resourceURL("tags", "list")
	next.RawQuery = "n=" + strconv.Itoa(tagsPerPage)
	for pages := 0; next != nil; pages++ {
		if pages == maxPages {
			return nil, s.explainError(ctx, "list the tags", fmt.Errorf("the list has more than %d pages, which is the limit: "+
				"name a tag instead of a version constraint", maxPages))
		}
		resp, err := s.sendRequest(ctx, purpose{op: opTags}, http.MethodGet, next)
		if err != nil {
			return nil, err
		}
		before := len(list.tags)
		err = list.readPage(resp.Body)
		_ = resp.Body.Close()
		if err == nil && list.repeated > 0 && len(list.tags) == before {
			err = errors.New("it repeats a page of the list: ask its operator")
		}
		if err != nil {
			return nil, s.explainError(ctx, "list the tags", err)
		}
		if next, err = nextPage(next, resp.Header.Values("Link")); err != nil {
			return nil, s.explainError(ctx, "list the tags", err)
		}
	}
	return list.tags, nil
}

// nextPage returns the URL of the next page of a list, or nil after the last page. It copies only the query of the URL
// in the Link header. The host and path of that URL may be valid only in the registry's own network.
func nextPage(page *url.URL, links []string) (*url.URL, error) {
	for _, link := range splitHeader(links, ',') {
		target, parameters, ok := strings.Cut(strings.TrimPrefix(link, "<"), ">")
		if !ok || target == "" || !isNext(parameters) {
			continue
		}
		found, err := url.Parse(target)
		if err != nil || found.RawQuery == "" || found.RawQuery == page.RawQuery {
			return nil, errors.New("its link to the next page contains no start")
		}
		next := *page
		next.RawQuery = found.RawQuery
		return &next, nil
	}
	return nil, nil
}

// isNext reports whether a link in a Link header has the parameter rel="next". A link without rel counts, too,
// because some registries do not send it.
func isNext(parameters string) bool {
	related := false
	for _, parameter := range splitHeader([]string{parameters}, ';') {
		key, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(key), "rel") {
			continue
		}
		related = true
		for relation := range strings.FieldsSeq(strings.Trim(strings.TrimSpace(value), `"`)) {
			if strings.EqualFold(relation, "next") {
				return true
			}
		}
	}
	return !related
}

// splitHeader splits header values at each separator outside of quotes and angle brackets.
func splitHeader(values []string, separator byte) []string {
	var parts []string
	for _, value := range values {
		start, quoted, bracketed := 0, false, false
		for i := 0; i <= len(value); i++ {
			switch {
			case i == len(value) || (value[i] == separator && !quoted && !bracketed):
				if part := strings.TrimSpace(value[start:i]); part != "" {
					parts = append(parts, part)
				}
				start = i + 1
			case value[i] == '\\' && quoted:
				i++
			case value[i] == '"':
				quoted = !quoted
			case value[i] == '<' && !quoted:
				bracketed = true
			case value[i] == '>' && !quoted:
				bracketed = false
			}
		}
	}
	return parts
}

// tagList collects the tags of a repository from all pages of the list.
type tagList struct {
	tags  []string
	bytes int
	known map[string]bool
	// repeated is the number of tags in the registry's list that are repetitions.
	repeated int
}

func (l *tagList) readPage(page io.Reader) error {
	content, err := io.ReadAll(page)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, &struct{ Tags *tagList }{l})
}

// UnmarshalJSON adds the tags of a JSON array one by one, so that it can stop at the limits. JSON null adds no tags.
func (l *tagList) UnmarshalJSON(array []byte) error {
	return oci.ReadElements(array, '[', func(in *json.Decoder) error {
		var tag string
		if err := in.Decode(&tag); err != nil {
			return err
		}
		return l.addTag(tag)
	})
}

func (l *tagList) addTag(tag string) error {
	if l.known[tag] {
		l.repeated++
		return nil
	}
	if l.known == nil {
		l.known = make(map[string]bool)
	}
	l.known[tag] = true
	l.bytes += len(tag)
	if len(l.tags) == maxTags || l.bytes > maxTagBytes {
		return fmt.Errorf("the repository has more than %d tags or %d MiB of them, which is the limit: "+
			"name a tag instead of a version constraint, or delete old tags", maxTags, maxTagBytes>>20)
	}
	l.tags = append(l.tags, tag)
	return nil
}
