// SPDX-License-Identifier: Apache-2.0

package resultcache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resultcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// function is an evaluator that counts its evaluations.
type function struct {
	calls    atomic.Int64
	evaluate func(ctx context.Context, req evaluation.Request) (evaluation.Response, error)
}

func (*function) Name() string { return "pod" }

func (f *function) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	f.calls.Add(1)
	return f.evaluate(ctx, req)
}

// of returns a function with the digest that returns its input.
func of(digest string) *function {
	return &function{evaluate: func(_ context.Context, req evaluation.Request) (evaluation.Response, error) {
		return evaluation.Response{ResourceList: req.ResourceList, Log: []byte("log"), Digest: digest}, nil
	}}
}

// resolved has all images resolved to one digest.
func resolved(digest string) resultcache.Digests {
	return func(context.Context, imagename.Name) (string, error) { return digest, nil }
}

// wrap puts a cache for the images of example.com/fn, but none whose name begins with net, before a function.
func wrap(t *testing.T, maxBytes int64, digests resultcache.Digests, f *function) evaluation.Evaluator {
	t.Helper()
	c := resultcache.New(resultcache.Config{
		Images: patterns(t, "example.com/fn/*"), Except: patterns(t, "example.com/fn/net-*"),
		MaxBytes: maxBytes, Digests: digests, Meters: noop.NewMeterProvider(),
	})
	return c.Wrap(f)
}

func patterns(t *testing.T, list ...string) imagename.Patterns {
	t.Helper()
	p, err := imagename.ParsePatterns(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request(image, input string) evaluation.Request {
	name, err := imagename.Parse(image, "")
	if err != nil {
		panic(err)
	}
	return evaluation.Request{
		Given: image, Image: name, ResourceList: []byte(input),
		Measured: evalmetrics.NewActive(noop.NewMeterProvider()).Begin(image),
	}
}

func TestWhatIsRemembered(t *testing.T) {
	const one, two = "sha256:" + "1111111111111111111111111111111111111111111111111111111111111111",
		"sha256:" + "2222222222222222222222222222222222222222222222222222222222222222"
	type call struct{ image, input string }
	same := []call{{"example.com/fn/set:v1", "a"}, {"example.com/fn/set:v1", "a"}}
	failing := errors.New("no answer")
	tests := map[string]struct {
		reason  string
		digests resultcache.Digests
		ran     string // the digest that the evaluator reports
		calls   []call
		want    string // of each call, how the cache was used
	}{
		"hit": {"the second evaluation is the first", resolved(one), one, same, "miss hit"},
		"input": {
			"another input is another evaluation", resolved(one), one, []call{same[0], {same[0].image, "b"}}, "miss miss",
		},
		"tags": {
			"tags of one digest are one image", resolved(one), one, []call{same[0], {"example.com/fn/set:v2", "a"}}, "miss hit",
		},
		"others": {"only listed images", resolved(one), one, []call{{"example.com/other:v1", "a"}}, "-"},
		"network": {
			"the input does not decide what the network answers", resolved(one), one,
			[]call{{"example.com/fn/net-x:v1", "a"}},
			"-",
		},
		"unresolved": {
			"without a digest, the evaluator has its say",
			func(context.Context, imagename.Name) (string, error) { return "", failing }, one, same, "- -",
		},
		"no resolver": {"nothing is known of tags then", nil, one, same, "- -"},
		"digest given": {
			"nothing needs to be resolved", nil, one,
			[]call{{"example.com/fn/set@" + one, "a"}, {"example.com/fn/set@" + one, "a"}},
			"miss hit",
		},
		"unknown image": {"what ran is not known to be the image", resolved(one), "", same, "miss miss"},
		"moved": {
			"the response is that of the digest that ran, not of the one that was resolved",
			resolved(one), two, append(same, call{"example.com/fn/set@" + two, "a"}), "miss miss hit",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := wrap(t, 1<<20, tc.digests, of(tc.ran))
			var got []string
			for _, c := range tc.calls {
				resp, err := e.Evaluate(t.Context(), request(c.image, c.input))
				if err != nil {
					t.Fatal(err)
				}
				if string(resp.ResourceList) != c.input || string(resp.Log) != "log" {
					t.Errorf("output %q, log %q", resp.ResourceList, resp.Log)
				}
				if resp.Cache == "" {
					resp.Cache = "-"
				}
				got = append(got, resp.Cache)
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// TestUnknownDigestsAreCounted has an image whose digest cannot be resolved: the function runs all the same.
func TestUnknownDigestsAreCounted(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	cache := resultcache.New(resultcache.Config{
		Images: patterns(t, "example.com/**"), MaxBytes: 1 << 20, Meters: tel.Meters,
		Digests: func(context.Context, imagename.Name) (string, error) { return "", errors.New("registry is down") },
	})
	if _, err := cache.Wrap(of("sha256:1")).Evaluate(t.Context(), request("example.com/fn:v1", "x")); err != nil {
		t.Error(err)
	}
	if want := `fn_result_cache_lookups_total{outcome="unresolved"} 1`; !strings.Contains(scrape(), want) {
		t.Errorf("no %s in\n%s", want, scrape())
	}
}

func TestFailuresAreNotRemembered(t *testing.T) {
	f := of("sha256:1")
	succeed := f.evaluate
	f.evaluate = func(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
		if f.calls.Load() == 1 {
			return evaluation.Response{}, fault.New(fault.Internal, "exit code 1")
		}
		return succeed(ctx, req)
	}
	e := wrap(t, 1<<20, resolved("sha256:1"), f)
	if _, err := e.Evaluate(t.Context(), request("example.com/fn/set:v1", "a")); err == nil {
		t.Error("a failure is none")
	}
	if resp, err := e.Evaluate(t.Context(), request("example.com/fn/set:v1", "a")); err != nil || resp.Cache != "miss" {
		t.Errorf("after a failure: %q, %v", resp.Cache, err)
	}
}

// TestEntriesAreBounded has many results of all sizes, of which a function is asked for some again.
func TestEntriesAreBounded(t *testing.T) {
	const limit = 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	f := of("sha256:1")
	e := wrap(t, limit, resolved("sha256:1"), f)
	for range 2000 {
		size := rng.IntN(5000)
		if _, err := e.Evaluate(t.Context(), request("example.com/fn/set:v1", strings.Repeat("x", size))); err != nil {
			t.Fatal(err)
		}
		if held := resultcache.Held(e); held > limit {
			t.Fatalf("%d bytes are held, of %d", held, limit)
		}
	}
	before := f.calls.Load()
	for _, want := range []string{"miss", "miss"} {
		resp, err := e.Evaluate(t.Context(), request("example.com/fn/set:v1", strings.Repeat("x", limit)))
		if err != nil || resp.Cache != want {
			t.Errorf("larger than the cache: %q, %v, want %s", resp.Cache, err, want)
		}
	}
	if f.calls.Load() != before+2 || resultcache.Held(e) < limit/2 {
		t.Errorf("a result that does not fit leaves %d bytes", resultcache.Held(e))
	}
}

// TestLeastRecentlyUsedGoFirst fills a cache in which one entry stays in use.
func TestLeastRecentlyUsedGoFirst(t *testing.T) {
	e := wrap(t, 20_000, resolved("sha256:1"), of("sha256:1"))
	for i := range 100 {
		for _, input := range []string{"in use", fmt.Sprint(i, strings.Repeat("x", 2000))} {
			resp, err := e.Evaluate(t.Context(), request("example.com/fn/set:v1", input))
			if err != nil {
				t.Fatal(err)
			}
			if want := i > 0 && input == "in use"; (resp.Cache == "hit") != want {
				t.Fatalf("round %d: %q is a %s", i, input[:2], resp.Cache)
			}
		}
	}
}

// TestManyCallers is for the race detector.
func TestManyCallers(t *testing.T) {
	e := wrap(t, 5_000, resolved("sha256:1"), of("sha256:1"))
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for j := range 200 {
				input := strconv.Itoa((i + j) % 7)
				resp, err := e.Evaluate(t.Context(), request("example.com/fn/set:v1", input))
				if err != nil || string(resp.ResourceList) != input {
					t.Errorf("got %q, %v, want %q", resp.ResourceList, err, input)
				}
			}
		})
	}
	callers.Wait()
}
