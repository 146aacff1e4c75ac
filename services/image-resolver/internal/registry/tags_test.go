// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// tags lists a repository.
func (w *world) tags(t *testing.T, repository string) (tags []string, err error) {
	t.Helper()
	err = newClient(t, w.Config).With(t.Context(), repository, func(ctx context.Context, s *registry.Session) (err error) {
		tags, err = s.Tags(ctx)
		return err
	})
	return tags, err
}

// endless is a registry that makes up tags of a length, that many on each page. The
// last page is the one that has the given number of tags before it; -1 is none.
func endless(perPage, length, last int) func(http.Handler) http.Handler {
	return testregistry.On("/tags/list", func(rw http.ResponseWriter, req *http.Request, _ http.Handler) {
		first, _ := strconv.Atoi(req.URL.Query().Get("last"))
		if first != last {
			rw.Header().Set("Link", fmt.Sprintf(`</v2/fn/tags/list?last=%d>; rel="next"`, first+perPage))
		}
		tags := make([]string, perPage)
		for i := range tags {
			tags[i] = fmt.Sprintf(`"%s%06d"`, strings.Repeat("0", length-6), first+i)
		}
		_, _ = io.WriteString(rw, `{"name":"fn","tags":[`+strings.Join(tags, ",")+`]}`)
	})
}

func TestListOfTagsHasABound(t *testing.T) {
	tests := map[string]struct {
		reason   string
		registry func(http.Handler) http.Handler
		// tags is how many there are; zero for an error.
		tags int
		// pages is how many may be asked for at most.
		pages int
	}{
		"as many as may be":       {"a tag for each commit", endless(1000, 20, 49_000), 50_000, 50},
		"one more":                {"not cut: the highest version may be missing", endless(1000, 20, 50_000), 0, 51},
		"without end":             {"it would fill the memory", endless(1000, 20, -1), 0, 51},
		"on one page":             {"a registry may not care how many are asked for", endless(60_000, 20, 0), 0, 1},
		"signatures":              {"they have long tags", endless(1000, 75, 49_000), 50_000, 50},
		"long tags without end":   {"registries accept 128 characters", endless(1000, 4000, -1), 0, 2},
		"one tag of several MB's": {"what is no tag has a bound too", endless(1, 5<<20, -1), 0, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Insecure = []string{"registry.example"}
			r := w.add(t, "registry.example", tc.registry)
			tags, err := w.tags(t, "registry.example/fn")
			if len(tags) != tc.tags || (err == nil) != (tc.tags > 0) {
				t.Errorf("%d tags, %v, want %d: %s", len(tags), err, tc.tags, tc.reason)
			}
			if err != nil && (fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "limit")) {
				t.Errorf("%v, want Precondition that names the limit", err)
			}
			if got := r.Count("GET /v2/fn/tags/list"); got > tc.pages {
				t.Errorf("%d pages read, want at most %d", got, tc.pages)
			}
		})
	}
}

func TestPageOfTags(t *testing.T) {
	tests := map[string]struct {
		reason, page, want string
		says               string // in the error; empty for success
	}{
		"usual": {"as the specification has it", `{"name":"fn","tags":["v1","v2"]}`, "v1 v2", ""},
		"other fields": {
			"some registries say more", `{"manifest":{"sha256:0":{"tag":["x"]}},"tags":["v1"],"child":[]}`, "v1", "",
		},
		"null":      {"a repository without tags", `{"name":"fn","tags":null}`, "", ""},
		"none":      {"a repository without tags", `{}`, "", ""},
		"no object": {"a proxy's answer", `["v1"]`, "", "cannot unmarshal array"},
		"no array":  {"a proxy's answer", `{"tags":"v1"}`, "", `expected '['`},
		"no text":   {"a proxy's answer", `{"tags":[1]}`, "", "cannot unmarshal number"},
		"no JSON":   {"a proxy's login page", `<html>`, "", "invalid character"},
		"cut off":   {"half a list is none", `{"tags":["v1","v2"`, "", "unexpected end of JSON"},
		"nothing":   {"half a list is none", ``, "", "unexpected end of JSON"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Insecure = []string{"registry.example"}
			w.add(
				t,
				"registry.example",
				testregistry.On("/tags/list", func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
					_, _ = io.WriteString(rw, tc.page)
				}),
			)
			tags, err := w.tags(t, "registry.example/fn")
			if got := strings.Join(tags, " "); got != tc.want || (err == nil) != (tc.says == "") {
				t.Errorf("tags %q, %v, want %q: %s", got, err, tc.want, tc.reason)
			}
			if err != nil && (fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("%v, want Precondition with %q: %s", err, tc.says, tc.reason)
			}
		})
	}
}
