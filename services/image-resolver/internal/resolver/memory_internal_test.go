// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/cache"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// What the cache may need in these tests, in bytes. Failures take long to come about.
const (
	forAnswers  = 1 << 20
	forFailures = 1 << 19
)

// wordy is a registry that refuses everything with many words.
type wordy struct{}

func (wordy) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path == "/v2/" {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
	}
	words := `{"errors":[{"code":"DENIED","message":"` + strings.Repeat("no ", 500) + `"}]}`
	return &http.Response{
		StatusCode: http.StatusForbidden,
		Body:       io.NopCloser(strings.NewReader(words)),
		Request:    req,
	}, nil
}

// anonymous has no credentials.
type anonymous struct{}

func (anonymous) Lookup(context.Context, string) (c credentials.Credential, err error) { return c, nil }
func (anonymous) Renew(context.Context, string) (c credentials.Credential, err error)  { return c, nil }

func newResolver(t *testing.T, network http.RoundTripper, bound int64, mirrors map[string][]string) *Resolver {
	t.Helper()
	client := registry.New(registry.Config{
		Transport: network, Credentials: anonymous{}, Mirrors: mirrors, Concurrent: 64, Telemetry: telemetry.Discard(),
	})
	r := New(Config{
		Platforms: oci.Platforms{{OS: "linux", Architecture: "amd64"}}, Registry: client,
		MaxBytes: bound, Tags: cache.Lifetime{TTL: time.Hour, Failure: time.Hour}, Telemetry: telemetry.Discard(),
	})
	return r
}

// image returns the n-th image with so many variables, as a registry would have it.
func image(t *testing.T, n, env int) *oci.Image {
	t.Helper()
	var config strings.Builder
	config.WriteString(
		`{"os":"linux","architecture":"amd64","config":{` +
			`"Entrypoint":["/usr/local/bin/function"],"User":"65532:65532","Env":["PATH=/usr/bin"`,
	)
	for i := range env {
		fmt.Fprintf(&config, `,"VARIABLE_%d=value %d"`, i, n)
	}
	config.WriteString(
		`]},"rootfs":{"type":"layers","diff_ids":["sha256:` + strings.Repeat("0",
			64) + `"]},"history":[{"created_by":"` + strings.Repeat("RUN make ", 100) + `"}]}`,
	)
	m := &oci.Manifest{Digest: oci.Digest([]byte(config.String()))}
	parsed, err := oci.ParseConfig(m, []byte(config.String()))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers held
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestMemoryIsWhatItIsTakenToBe(t *testing.T) {
	tests := map[string]struct {
		reason  string
		bound   int64
		mirrors map[string][]string
		fill    func(t *testing.T, r *Resolver, n int)
	}{
		"bare images": {"the record counts", forAnswers, nil, func(t *testing.T, r *Resolver, n int) {
			r.cache.Put(key{fmt.Sprintf("example.com/fn%d", n), "v1", ""}, answer{image: image(t, n, 0)})
		}},
		"small images": {"so do variables", forAnswers, nil, func(t *testing.T, r *Resolver, n int) {
			r.cache.Put(key{fmt.Sprintf("example.com/fn%d", n), "v1", ""}, answer{image: image(t, n, 8)})
		}},
		"large images": {"however many", forAnswers, nil, func(t *testing.T, r *Resolver, n int) {
			r.cache.Put(key{fmt.Sprintf("example.com/fn%d", n), "v1", ""}, answer{image: image(t, n, 200)})
		}},
		"lists of tags": {"so do those", forAnswers, nil, func(_ *testing.T, r *Resolver, n int) {
			var tags []string
			for i := range 100 {
				tags = append(tags, fmt.Sprintf("v%d.%d.0", n, i))
			}
			r.cache.Put(key{repository: fmt.Sprintf("example.com/fn%d", n)}, answer{tags: tags})
		}},
		"failures": {"an error keeps what its registry said", forFailures, nil, fail},
		"failures of mirrors": {
			"and what each mirror said", forFailures,
			map[string][]string{"example.com": {"one.example/a", "two.example/b", "three.example/c", "four.example/d"}},
			fail,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newResolver(t, wordy{}, tc.bound, tc.mirrors)
			before := heap()
			most := int64(-1)
			for n := 0; n < 20_000 && r.cache.Bytes() > most; n++ { // until something is dropped
				most = r.cache.Bytes()
				tc.fill(t, r, n)
			}
			taken, counted := heap()-before, r.cache.Bytes()
			t.Logf("%d bytes are counted, %d are taken", counted, taken)
			if counted > tc.bound || counted < tc.bound*9/10 {
				t.Errorf("%d bytes are counted, want nearly the bound of %d", counted, tc.bound)
			}
			if taken > tc.bound*5/4 {
				t.Errorf("%d bytes are taken, more than the bound of %d allows for: %s", taken, tc.bound, tc.reason)
			}
			runtime.KeepAlive(r)
		})
	}
}

// fail asks for an image that is denied.
func fail(t *testing.T, r *Resolver, n int) {
	t.Helper()
	req := &imageresolverv1.ResolveImageRequest{Image: fmt.Sprintf("example.com/fn%d:v1", n)}
	_, err := r.ResolveImage(t.Context(), req)
	if err == nil || !strings.Contains(err.Error(), "DENIED") {
		t.Fatalf("%v, want a refusal", err)
	}
}
