// SPDX-License-Identifier: Apache-2.0

package resultcache_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resultcache"
)

// fakeServer is a server in memory.
type fakeServer struct {
	mu       sync.Mutex
	values   map[string][]byte
	ttl      time.Duration // of the last value
	err      error         // of all requests
	hangs    bool
	gets     int
	settings int
}

// await returns what a request ends with.
func (s *fakeServer) await(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hangs {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return ctx.Err()
	}
	return s.err
}

func (s *fakeServer) Get(ctx context.Context, name string) ([]byte, error) {
	err := s.await(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), s.values[name]...), nil
}

func (s *fakeServer) Set(ctx context.Context, name string, value []byte, ttl time.Duration) error {
	err := s.await(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings++
	if err == nil {
		s.values[name], s.ttl = value, ttl
	}
	return err
}

// now has the server hang or fail from now on.
func (s *fakeServer) now(hangs bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs, s.err = hangs, err
}

// gatewayOf is one of the gateways that share a server.
type gatewayOf struct {
	evaluation.Evaluator

	run    func(context.Context) error
	scrape func() string
	log    *logtest.Log
}

// share returns a gateway's cache with a server, before a function.
func share(t *testing.T, server resultcache.Server, key byte, f *function) gatewayOf {
	t.Helper()
	tel, scrape := scrapetest.New(t)
	log := new(logtest.Log)
	tier, err := resultcache.NewTier(resultcache.TierConfig{
		Server: server, Key: []byte(strings.Repeat(string(rune(key)), resultcache.SealKeyBytes)), TTL: time.Hour,
		MaxResponseBytes: 1 << 20, Log: slog.New(slog.NewTextHandler(log, nil)), Meters: tel.Meters,
	})
	if err != nil {
		t.Fatal(err)
	}
	cache, err := resultcache.New(resultcache.Config{
		Images: patterns(t, "example.com/fn/*"), MaxBytes: 1 << 20, Digests: resolved("sha256:1"), Tier: tier,
		Meters: tel.Meters,
	})
	if err != nil {
		t.Fatal(err)
	}
	return gatewayOf{cache.Wrap(f), tier.Run, scrape, log}
}

// listFunction returns a function whose output is a resource list with a result and its input.
func listFunction() *function {
	return &function{evaluate: func(_ context.Context, req evaluation.Request) (evaluation.Response, error) {
		list := "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\nresults:\n- message: '" +
			string(req.ResourceList) + "'\n  severity: warning\n"
		return evaluation.Response{
			ResourceList: []byte(list), Log: []byte("log"), Digest: "sha256:1",
			Results: []resourcelist.Result{{Message: string(req.ResourceList), Severity: "warning"}},
		}, nil
	}}
}

// evaluate evaluates an input, and fails the test if the cache is not used as wanted.
func (g gatewayOf) evaluate(t *testing.T, input, want string) evaluation.Response {
	t.Helper()
	resp, err := g.Evaluate(t.Context(), request("example.com/fn/set:v1", input))
	if err != nil || resp.Cache != want {
		t.Errorf("%s: %q, %v, want %q", input, resp.Cache, err, want)
	}
	return resp
}

// counts returns the counts of requests to the server.
func (g gatewayOf) counts(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for line := range strings.Lines(g.scrape()) {
		labels, ok := strings.CutPrefix(line, "fn_result_cache_server_requests_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(labels, "} ")
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil {
			t.Fatal(err)
		}
		labels = strings.NewReplacer(`operation=`, "", `outcome=`, "", `"`, "", ",", " ").Replace(labels)
		counts[labels] = n
	}
	return counts
}

func (g gatewayOf) expectCounts(t *testing.T, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, g.counts(t)); diff != "" {
		t.Errorf("requests to the server (-want +got):\n%s", diff)
	}
}

// background runs writers until the test's bubble ends.
func background(t *testing.T, gateways ...gatewayOf) {
	t.Helper()
	for _, g := range gateways {
		go func() { _ = g.run(t.Context()) }()
	}
}

func newServer() *fakeServer { return &fakeServer{values: map[string][]byte{}} }

func TestGatewaysShareResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		first, second := share(t, server, 'k', listFunction()), share(t, server, 'k', listFunction())
		background(t, first, second)
		want := first.evaluate(t, "a", resultcache.Miss)
		synctest.Wait()
		got := second.evaluate(t, "a", resultcache.ServerHit)
		if got.Evaluator != "cache" {
			t.Errorf("the evaluator is %q", got.Evaluator)
		}
		want.Cache, got.Cache, got.Evaluator = "", "", ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the second gateway's response (-first +second):\n%s", diff)
		}
		second.evaluate(t, "a", resultcache.Hit)
		first.expectCounts(t, map[string]int{"get miss": 1, "set written": 1})
		second.expectCounts(t, map[string]int{"get hit": 1})
		if server.ttl != time.Hour || len(server.values) != 1 {
			t.Errorf("%d values, the last for %v", len(server.values), server.ttl)
		}
		for name, value := range server.values {
			if strings.Contains(string(value), "ResourceList") || strings.Contains(string(value), "log") {
				t.Errorf("%s: the value can be read", name)
			}
		}
	})
}

// TestOthersWaitForTheServerOnce has five callers of one input, of which one asks the server.
func TestOthersWaitForTheServerOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		first, second := share(t, server, 'k', listFunction()), share(t, server, 'k', listFunction())
		background(t, first)
		first.evaluate(t, "a", resultcache.Miss)
		synctest.Wait()
		var outcomes sync.Map
		var callers sync.WaitGroup
		for range 5 {
			callers.Go(func() {
				resp, err := second.Evaluate(t.Context(), request("example.com/fn/set:v1", "a"))
				if err != nil {
					t.Error(err)
				}
				outcomes.Store(resp.Cache, true)
			})
		}
		callers.Wait()
		if _, missed := outcomes.Load(resultcache.Miss); missed || server.gets != 2 {
			t.Errorf("%d requests to the server, want one of each gateway", server.gets)
		}
	})
}

// TestValuesOfOthersAreMisses changes what the server has.
func TestValuesOfOthersAreMisses(t *testing.T) {
	flip := func(at int) func(map[string][]byte) {
		return func(values map[string][]byte) {
			for name, value := range values {
				value[(at+len(value))%len(value)] ^= 1
				values[name] = value
			}
		}
	}
	replace := func(with func([]byte) []byte) func(map[string][]byte) {
		return func(values map[string][]byte) {
			for name, value := range values {
				values[name] = with(value)
			}
		}
	}
	moved := func(values map[string][]byte) {
		names := slices.Collect(maps.Keys(values))
		values[names[0]], values[names[1]] = values[names[1]], values[names[0]]
	}
	for name, change := range map[string]func(map[string][]byte){
		"nonce": flip(0), "content": flip(20), "tag": flip(-1),
		"shorter": replace(func(v []byte) []byte { return v[:len(v)-1] }),
		"longer":  replace(func(v []byte) []byte { return append(v, 0) }),
		"short":   replace(func([]byte) []byte { return []byte("x") }),
		"plain": replace(func([]byte) []byte {
			return []byte("\x00\x00apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n")
		}),
		"moved": moved,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				first, second := share(t, server, 'k', listFunction()), share(t, server, 'k', listFunction())
				background(t, first)
				first.evaluate(t, "a", resultcache.Miss)
				first.evaluate(t, "b", resultcache.Miss)
				synctest.Wait()
				change(server.values)
				second.evaluate(t, "a", resultcache.Miss)
				second.evaluate(t, "b", resultcache.Miss)
				second.expectCounts(t, map[string]int{"get unopened": 2})
			})
		})
	}
}

func TestOtherKeysShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		first, second := share(t, server, 'k', listFunction()), share(t, server, 'l', listFunction())
		background(t, first, second)
		first.evaluate(t, "a", resultcache.Miss)
		synctest.Wait()
		second.evaluate(t, "a", resultcache.Miss)
		synctest.Wait()
		second.expectCounts(t, map[string]int{"get miss": 1, "set written": 1})
		if len(server.values) != 2 {
			t.Errorf("%d values, want one for each key", len(server.values))
		}
	})
	_, err := resultcache.NewTier(resultcache.TierConfig{Key: []byte("short"), Meters: telemetry.Discard().Meters})
	if err == nil || !strings.Contains(err.Error(), "5 bytes, want 32") || strings.Contains(err.Error(), "short") {
		t.Errorf("a short key: %v", err)
	}
}

// TestAServerThatHangs measures how long callers wait for it.
func TestAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.now(true, nil)
		g := share(t, server, 'k', listFunction())
		start := time.Now()
		waited := func() time.Duration {
			took := time.Since(start).Round(time.Millisecond)
			start = time.Now()
			return took
		}
		for i := range 10 {
			g.evaluate(t, strconv.Itoa(i), resultcache.Miss)
			want := time.Duration(0)
			if i < 3 {
				want = 200 * time.Millisecond
			}
			if took := waited(); took != want {
				t.Errorf("evaluation %d took %v, want %v", i, took, want)
			}
		}
		g.expectCounts(t, map[string]int{"get error": 3, "get skipped": 7})
		<-time.After(5 * time.Second)
		waited()
		g.evaluate(t, "one tries again", resultcache.Miss)
		g.evaluate(t, "the next one does not", resultcache.Miss)
		if took := waited(); took != 200*time.Millisecond {
			t.Errorf("after a pause, two evaluations took %v", took)
		}
		<-time.After(5 * time.Second)
		server.now(false, nil)
		for i := range 3 {
			g.evaluate(t, "again "+strconv.Itoa(i), resultcache.Miss)
		}
		g.expectCounts(t, map[string]int{"get error": 4, "get skipped": 8, "get miss": 3})
		for text, want := range map[string]int{"result cache server failed": 1, "result cache server answers again": 1} {
			if n := g.log.Count(text); n != want {
				t.Errorf("%q %d times in the log, want %d:\n%s", text, n, want, g.log)
			}
		}
	})
}

// TestACallerThatLeavesIsNoFailure has callers leave while the server hangs.
func TestACallerThatLeavesIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.now(true, nil)
		g := share(t, server, 'k', slow(nil))
		for i := range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err := g.Evaluate(ctx, request("example.com/fn/set:v1", strconv.Itoa(i)))
			if cancel(); fault.Of(err) != fault.DeadlineExceeded {
				t.Errorf("got %v", err)
			}
		}
		g.expectCounts(t, map[string]int{"get skipped": 5})
		if g.log.String() != "" {
			t.Errorf("the log has %s", g.log)
		}
		if server.gets != 5 {
			t.Errorf("the server was asked %d times, want 5: callers that leave are not its failures", server.gets)
		}
	})
}

// TestSlowWritesDelayNoCaller has a server that answers, and does not take results.
func TestSlowWritesDelayNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		g := share(t, readOnly{server}, 'k', listFunction())
		background(t, g, g)
		start := time.Now()
		for i := range 300 {
			g.evaluate(t, strconv.Itoa(i), resultcache.Miss)
			synctest.Wait()
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("300 evaluations took %v", took)
		}
		// Two are being written, and 256 wait.
		g.expectCounts(t, map[string]int{"get miss": 300, "set dropped": 42})
		<-time.After(time.Minute)
		synctest.Wait()
		counts := g.counts(t)
		if counts["set error"] < 3 || counts["set error"]+counts["set skipped"] != 258 {
			t.Errorf("afterwards: %v", counts)
		}
		if !strings.Contains(g.scrape(), "fn_result_cache_server_queued_bytes 0") {
			t.Errorf("what was written is still counted:\n%s", g.scrape())
		}
	})
}

// readOnly is a server that hangs when it is written to.
type readOnly struct{ *fakeServer }

func (readOnly) Set(ctx context.Context, _ string, _ []byte, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestQueuedBytesAreBounded has results of all sizes that nothing writes.
func TestQueuedBytesAreBounded(t *testing.T) {
	g := share(t, newServer(), 'k', of("sha256:1"))
	for i := range 40 {
		g.evaluate(t, strconv.Itoa(i)+strings.Repeat("x", 1<<20-100), resultcache.Miss)
	}
	g.evaluate(t, strings.Repeat("x", 1<<20+1), resultcache.Miss)
	counts := g.counts(t)
	if dropped := counts["set dropped"]; dropped < 20 || dropped > 30 {
		t.Errorf("%d of 41 MiB are dropped, want what exceeds 16 MiB", dropped)
	}
}

// TestResultsTooLargeAreDropped has a list that is small enough, and results that are not.
func TestResultsTooLargeAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		f := listFunction()
		f.evaluate = func(context.Context, evaluation.Request) (evaluation.Response, error) {
			results := []resourcelist.Result{{Message: strings.Repeat("x", 2<<20)}}
			return evaluation.Response{ResourceList: []byte("list"), Digest: "sha256:1", Results: results}, nil
		}
		g := share(t, server, 'k', f)
		background(t, g)
		g.evaluate(t, "a", resultcache.Miss)
		synctest.Wait()
		g.expectCounts(t, map[string]int{"get miss": 1, "set dropped": 1})
		g.evaluate(t, "a", resultcache.Miss) // larger than the first tier too
	})
}

// TestOnlySuccessesAreShared has a function fail, and a server that fails.
func TestOnlySuccessesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		f := listFunction()
		succeed := f.evaluate
		f.evaluate = func(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
			if f.calls.Load() == 1 {
				return evaluation.Response{}, fault.New(fault.Internal, "exit code 1")
			}
			return succeed(ctx, req)
		}
		g := share(t, server, 'k', f)
		background(t, g)
		if _, err := g.Evaluate(t.Context(), request("example.com/fn/set:v1", "a")); err == nil {
			t.Error("a failure is none")
		}
		network := true
		req := request("example.com/fn/set:v1", "b")
		req.Network = &network
		if _, err := g.Evaluate(t.Context(), req); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(server.values) != 0 || server.gets != 1 {
			t.Errorf("the server was asked %d times, and has %v", server.gets, slices.Collect(maps.Keys(server.values)))
		}
		server.now(false, errors.New("OOM"))
		for i := range 5 {
			g.evaluate(t, strconv.Itoa(i), resultcache.Miss)
		}
		g.evaluate(t, "0", resultcache.Hit)
	})
}
