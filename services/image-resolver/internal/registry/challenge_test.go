// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// challenging requires a token for all requests but those for tokens, and for pings if these require one too.
func challenging(pings bool, challenges ...string) func(http.Handler) http.Handler {
	return testregistry.On("/", func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case req.URL.Path == "/token":
			_, _ = io.WriteString(w, `{"token":"good"}`)
		case req.Header.Get("Authorization") == "Bearer good" || (req.URL.Path == "/v2/" && !pings):
			next.ServeHTTP(w, req)
		default:
			for _, challenge := range challenges {
				w.Header().Add("WWW-Authenticate", challenge)
			}
			testregistry.Refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
		}
	})
}

// TestChallenges has registries that state several challenges, or state them for manifests only.
func TestChallenges(t *testing.T) {
	const basic, bearer = `Basic realm="a, b"`, `Bearer realm="http://registry.example/token",service="s",scope="x,y"`
	tests := map[string]struct {
		pings      bool
		challenges []string
	}{
		"one":                      {true, []string{bearer}},
		"two in one header":        {true, []string{basic + ", " + bearer}},
		"two, the other way round": {true, []string{bearer + ", " + basic}},
		"two headers":              {true, []string{basic, bearer}},
		"manifests only":           {false, []string{bearer}},
		"manifests only, and two":  {false, []string{basic + ", " + bearer}},
		"with an unknown one":      {true, []string{"Negotiate abc==, " + bearer}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Insecure = []string{"registry.example"}
			r := w.add(t, "registry.example", challenging(tc.pings, tc.challenges...))
			r.Push(t, "fn:v1", v1.Config{Cmd: []string{"fn"}})
			if _, err := w.manifest(t, "registry.example/fn", "v1"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMirrorsOfPrefixes has mirrors of a registry and of parts of it.
func TestMirrorsOfPrefixes(t *testing.T) {
	for repository, found := range map[string]string{
		"gcr.io/kpt-fn/set-labels": "catalog/set-labels", "gcr.io/kpt-fn": "catalog", "gcr.io/other/fn": "all/other/fn",
		"gcr.io/kpt-fnx/fn": "all/kpt-fnx/fn", "gcr.io/kpt-fn/old/fn": "all/kpt-fn/old/fn",
	} {
		w := newWorld(t)
		w.Mirrors = map[string][]string{
			"gcr.io/kpt-fn": {"mirror.example/catalog"}, "GCR.io": {"mirror.example/all/"},
		}
		w.Insecure = []string{"mirror.example"}
		r := w.add(t, "mirror.example")
		r.Push(t, found+":v1", v1.Config{Cmd: []string{"fn"}})
		if _, err := w.manifest(t, repository, "v1"); err != nil {
			t.Errorf("%s, which is at %s: %v", repository, found, err)
		}
	}
}

// TestLocalFailuresEndTheSearch has a full disk while a layer is read from a mirror.
func TestLocalFailuresEndTheSearch(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "/var/lib/images/x", Err: syscall.ENOSPC}
	w := newWorld(t)
	w.Mirrors = map[string][]string{"gone.example": {"mirror.example/all"}}
	w.Insecure = []string{"mirror.example"}
	w.add(t, "mirror.example")
	c := newClient(t, w.Config)
	calls := 0
	err := c.With(t.Context(), "gone.example/fn", func(context.Context, *registry.Session) error {
		calls++
		return fmt.Errorf("unpack: %w", full)
	})
	if calls != 1 || !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "gone.example") {
		t.Errorf("after %d calls: %v, want the full disk at once", calls, err)
	}
}

// TestTheMirrorsAnswerIsFirst has a tag that the mirror lacks, and a registry that cannot be reached.
func TestTheMirrorsAnswerIsFirst(t *testing.T) {
	w := newWorld(t)
	w.Mirrors = map[string][]string{"gone.example": {"mirror.example/all"}}
	w.Insecure = []string{"mirror.example"}
	w.add(t, "mirror.example")
	_, err := w.manifest(t, "gone.example/fn", "v1")
	if err == nil || !strings.HasPrefix(err.Error(), "registry mirror.example: ") ||
		!strings.Contains(err.Error(), "; after that: registry gone.example: ") {
		t.Errorf("%v, want the mirror's answer before the registry's", err)
	}
}

// TestLinksToTheNextPage has links as registries send them, for a list of two pages.
func TestLinksToTheNextPage(t *testing.T) {
	tests := map[string]struct {
		links []string
		want  string
		says  string // in the error; empty for success
	}{
		"usual":        {[]string{`</v2/fn/tags/list?last=v1&n=1>; rel="next"`}, "v1 v2", ""},
		"another path": {[]string{`</api/fn/tags/list?last=v1&n=1>; rel="next"`}, "v1 v2", ""},
		"another host": {[]string{`<https://elsewhere.example/v2/fn/tags/list?last=v1>; rel="next"`}, "v1 v2", ""},
		"no relation":  {[]string{`</v2/fn/tags/list?last=v1>`}, "v1 v2", ""},
		"no quotes":    {[]string{`</v2/fn/tags/list?last=v1>; rel=next`}, "v1 v2", ""},
		"first and next": {
			[]string{`</v2/fn/tags/list?n=1>; rel="first", </v2/fn/tags/list?last=v1>; rel="next"`}, "v1 v2", "",
		},
		"two headers": {
			[]string{`</v2/fn/tags/list?n=1>; rel="first"`, `</v2/fn/tags/list?last=v1>; rel="next"`}, "v1 v2", "",
		},
		"only first":      {[]string{`</v2/fn/tags/list?n=1>; rel="first"`}, "v1", ""},
		"comma in quotes": {[]string{`</v2/fn/tags/list?last=v1>; title="a, b"; rel="next"`}, "v1 v2", ""},
		"repeated":        {[]string{`</v2/fn/tags/list?page=%d>; rel="next"`}, "", "repeats a page"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Insecure = []string{"registry.example"}
			pages := 0
			w.add(t, "registry.example", testregistry.On("/", func(
				rw http.ResponseWriter, req *http.Request, next http.Handler,
			) {
				if !strings.HasSuffix(req.URL.Path, "/tags/list") {
					next.ServeHTTP(rw, req)
					return
				}
				if req.URL.Path != "/v2/fn/tags/list" {
					t.Errorf("asked for %s", req.URL)
				}
				if req.URL.Query().Get("last") == "v1" {
					_, _ = io.WriteString(rw, `{"tags":["v2"]}`)
					return
				}
				pages++
				for _, link := range tc.links {
					rw.Header().Add("Link", strings.Replace(link, "%d", strconv.Itoa(pages), 1))
				}
				_, _ = io.WriteString(rw, `{"tags":["v1"]}`)
			}))
			tags, err := w.tags(t, "registry.example/fn")
			if tc.says != "" {
				if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%v, want Precondition with %q", err, tc.says)
				}
				return
			}
			if got := strings.Join(tags, " "); err != nil || got != tc.want {
				t.Errorf("tags %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// TestEmptyPagesAreBounded has a list whose pages are empty and never end.
func TestEmptyPagesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.Insecure = []string{"registry.example"}
	pages := 0
	w.add(t, "registry.example", testregistry.On("/tags/list", func(
		rw http.ResponseWriter, _ *http.Request, _ http.Handler,
	) {
		pages++
		rw.Header().Set("Link", fmt.Sprintf(`</v2/fn/tags/list?page=%d>; rel="next"`, pages))
		_, _ = io.WriteString(rw, `{"tags":[]}`)
	}))
	if _, err := w.tags(t, "registry.example/fn"); fault.Of(err) != fault.Precondition || pages != 1000 {
		t.Errorf("%v after %d pages, want an error at the limit of 1000", err, pages)
	}
}
