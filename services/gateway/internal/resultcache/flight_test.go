// SPDX-License-Identifier: Apache-2.0

package resultcache_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	libfunction "github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/resultcache"
)

// slow returns a function that takes a second, unless its caller leaves before.
func slow(outcome error) *function {
	return &function{evaluate: func(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
		select {
		case <-time.After(time.Second):
			return evaluation.Response{ResourceList: req.ResourceList, Digest: "sha256:1"}, outcome
		case <-ctx.Done():
			return evaluation.Response{}, ctx.Err()
		}
	}}
}

// TestOthersGetNoOtherImage has callers of one digest wait for an evaluation that runs another one, since a tag
// has moved.
func TestOthersGetNoOtherImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slow(nil) // runs sha256:1
		e := wrap(t, 1<<20, resolved("sha256:old"), f)
		done := make(chan string)
		for range 3 {
			go func() {
				resp, err := e.Evaluate(t.Context(), request("example.com/fn/set:v1", "a"))
				if err != nil {
					t.Error(err)
				}
				done <- resp.Cache
			}()
		}
		for range 3 {
			if got := <-done; got != resultcache.Miss {
				t.Errorf("a caller got a response of another image: %s", got)
			}
		}
		if n := f.calls.Load(); n != 3 {
			t.Errorf("%d evaluations, want one for each caller", n)
		}
	})
}

// TestWaitingHasTheLimitOfEvaluations has a caller without a deadline wait for a function that takes longer.
func TestWaitingHasTheLimitOfEvaluations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := wrap(t, 1<<20, resolved("sha256:1"), slow(nil))
		done := make(chan error)
		go func() {
			_, err := e.Evaluate(t.Context(), request("example.com/fn/set:v1", "a"))
			done <- err
		}()
		synctest.Wait()
		req := request("example.com/fn/set:v1", "a")
		req.Limit = libfunction.NewTimeLimit(100*time.Millisecond, "FNR_TEST")
		start := time.Now()
		_, err := e.Evaluate(t.Context(), req)
		if took := time.Since(start); fault.Of(err) != fault.DeadlineExceeded || took > 200*time.Millisecond {
			t.Errorf("%v after %s, want the limit", err, took)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// ended is how an evaluation ended.
type ended struct {
	cache string
	err   error
	after time.Duration
}

// together has five callers evaluate the same, each a millisecond after the one before. leave has those leave
// after some time that it names, by their number.
func together(t *testing.T, f *function, leave map[int]time.Duration) []ended {
	t.Helper()
	e := wrap(t, 1<<20, resolved("sha256:1"), f)
	start := time.Now()
	outcomes := make([]ended, 5)
	done := make(chan struct{})
	for i := range outcomes {
		go func() {
			defer func() { done <- struct{}{} }()
			ctx := t.Context()
			if after, ok := leave[i]; ok {
				limited, cancel := context.WithTimeout(ctx, after)
				defer cancel()
				ctx = limited
			}
			resp, err := e.Evaluate(ctx, request("example.com/fn/set:v1", "a"))
			outcomes[i] = ended{resp.Cache, err, time.Since(start).Round(100 * time.Millisecond)}
		}()
		<-time.After(time.Millisecond)
	}
	for range outcomes {
		<-done
	}
	return outcomes
}

func count(outcomes []ended) map[string]int {
	counts := map[string]int{}
	for _, o := range outcomes {
		if o.err != nil {
			counts[fault.Of(o.err).String()]++
		} else {
			counts[o.cache]++
		}
	}
	return counts
}

func TestSimultaneousEvaluationsAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slow(nil)
		outcomes := together(t, f, nil)
		if got := count(outcomes); !maps.Equal(got, map[string]int{"miss": 1, "shared": 4}) || f.calls.Load() != 1 {
			t.Errorf("%v after %d evaluations", got, f.calls.Load())
		}
	})
}

func TestAnotherCallerTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slow(nil)
		outcomes := together(t, f, map[int]time.Duration{0: 500 * time.Millisecond})
		want := map[string]int{"DeadlineExceeded": 1, "miss": 1, "shared": 3}
		if got := count(outcomes); got["miss"] != 1 || got["shared"] != 3 || f.calls.Load() != 2 {
			t.Errorf("%v after %d evaluations, want %v after 2", got, f.calls.Load(), want)
		}
		for i, o := range outcomes[1:] {
			if o.after != 1500*time.Millisecond {
				t.Errorf("caller %d: after %v, want a second after the first one left", i+1, o.after)
			}
		}
	})
}

func TestACallerThatLeavesDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slow(nil)
		outcomes := together(t, f, map[int]time.Duration{2: 100 * time.Millisecond})
		if o := outcomes[2]; fault.Of(o.err) != fault.DeadlineExceeded || o.after != 100*time.Millisecond {
			t.Errorf("the caller that left: %v after %v", o.err, o.after)
		}
		if got := count(outcomes); got["miss"] != 1 || got["shared"] != 3 || f.calls.Load() != 1 {
			t.Errorf("%v after %d evaluations", got, f.calls.Load())
		}
	})
}

func TestFailuresAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slow(fault.New(fault.Internal, "exit code 1"))
		outcomes := together(t, f, nil)
		if got := count(outcomes); len(got) != 1 || f.calls.Load() != 5 {
			t.Errorf("%v after %d evaluations, want each caller's own failure", got, f.calls.Load())
		}
		for _, o := range outcomes[1:] {
			if o.after != 2*time.Second {
				t.Errorf("after %v: the callers that waited evaluate at the same time, not in turn", o.after)
			}
		}
	})
}

// TestAPanicLeavesOthers has the evaluator panic once, which servers recover from.
func TestAPanicLeavesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slow(nil)
		evaluate := f.evaluate
		f.evaluate = func(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
			if f.calls.Load() == 1 {
				<-time.After(time.Second)
				panic("broken")
			}
			return evaluate(ctx, req)
		}
		e := wrap(t, 1<<20, resolved("sha256:1"), f)
		go func() {
			defer func() { _ = recover() }()
			_, _ = e.Evaluate(t.Context(), request("example.com/fn/set:v1", "a"))
		}()
		synctest.Wait()
		resp, err := e.Evaluate(t.Context(), request("example.com/fn/set:v1", "a"))
		if err != nil || resp.Cache != "miss" {
			t.Errorf("got %q, %v", resp.Cache, err)
		}
	})
}
