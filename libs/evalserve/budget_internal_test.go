// SPDX-License-Identifier: Apache-2.0

package evalserve

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

// client returns the source of a client's n-th connection.
func client(name string, n int) source {
	return source{conn: fmt.Sprintf("%s:%d", name, n), peer: name}
}

// newTestBudget returns a budget for an endpoint that buffers a byte of each request that has not been read.
func newTestBudget(limit int64) *Budget {
	return NewBudget(limit, serve.Windows{Request: 1, Connection: 1 << 20}, "FNR_SOME_BYTES")
}

func (b *Budget) newReservation(from source) *Reservation { return &Reservation{budget: b, from: from} }

// hold reserves size bytes until ctx ends, for a function if its name is not empty. The channel gets the error of the
// request, or nil when it is evaluated.
func hold(ctx context.Context, b *Budget, from source, function string, size int64) <-chan error {
	result := make(chan error, 1)
	go func() {
		r := b.newReservation(from)
		defer r.release()
		err := r.acquire(ctx, size)
		if err == nil && function != "" {
			err = r.Claim(ctx, function)
		}
		result <- err
		if err == nil {
			<-ctx.Done()
		}
	}()
	synctest.Wait() // requests come one after the other
	return result
}

// checkEmpty reports as an error what a budget contains when all requests have ended.
func checkEmpty(t *testing.T, b *Budget) {
	t.Helper()
	if b.Reserved() != 0 || len(b.peers)+len(b.functions)+len(b.queue) != 0 {
		t.Errorf("afterwards %d bytes are reserved by %v, for %v, and %d are queued",
			b.reserved, b.peers, b.functions, len(b.queue))
	}
}

// checkExhausted reports an error that does not say all of want, or has no retry hint.
func checkExhausted(t *testing.T, err error, want ...string) {
	t.Helper()
	if _, hint := fault.RetryAfter(err); fault.Of(err) != fault.Exhausted || !hint {
		t.Errorf("got %v of class %v, want Exhausted with a hint", err, fault.Of(err))
		return
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q in it", err, text)
		}
	}
}

// TestRequestsAreQueued has requests come while client a uses 60 bytes of 100. Each comes a second after the request
// before it.
func TestRequestsAreQueued(t *testing.T) {
	type request struct {
		from     source
		size     int64
		rejected bool
		waits    time.Duration
	}
	a, b, c, d := client("a", 1), client("b", 1), client("c", 1), client("d", 1)
	tests := map[string]struct {
		reason   string
		ends     time.Duration // of the first request
		lasts    time.Duration // of the others
		requests []request
	}{
		"fits":     {"no request is queued without need", time.Hour, time.Second, []request{{b, 40, false, 0}}},
		"in time":  {"the memory is freed in time", 5 * time.Second, time.Second, []request{{b, 50, false, 5 * time.Second}}},
		"too long": {"a caller must learn of it", time.Hour, time.Second, []request{{b, 50, true, timeout}}},
		"other address": {
			"no address waits for another address", time.Hour, time.Second, []request{{b, 50, true, timeout}, {c, 20, false, 0}},
		},
		"same address": {
			"requests of one address keep their order", 5 * time.Second, time.Second,
			[]request{{b, 50, false, 5 * time.Second}, {b, 10, false, 4 * time.Second}},
		},
		"share": {
			"one address leaves a fourth", 5 * time.Second, time.Second,
			[]request{{a, 20, false, 5 * time.Second}, {b, 25, false, 0}},
		},
		"larger than the budget": {
			"it is admitted alone", 5 * time.Second, time.Second, []request{{b, 1000, false, 5 * time.Second}},
		},
		"one after the other": {
			"as soon as they fit", time.Second / 2, 3 * time.Second,
			[]request{
				{b, 70, false, time.Second / 2}, {c, 55, false, 2500 * time.Millisecond}, {d, 45, false, 1500 * time.Millisecond},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := newTestBudget(100)
				first := all.newReservation(a)
				if err := first.acquire(t.Context(), 60); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(tc.ends, first.release)
				for i, req := range tc.requests {
					go func() {
						r, begin := all.newReservation(req.from), time.Now()
						err := r.acquire(t.Context(), req.size)
						if waits := time.Since(begin); waits != req.waits || (err != nil) != req.rejected {
							t.Errorf("request %d: %v after %v, want rejected %v after %v: %s",
								i, err, waits, req.rejected, req.waits, tc.reason)
						}
						if err != nil {
							checkExhausted(t, err, "try again later")
						}
						<-time.After(tc.lasts)
						r.release()
					}()
					<-time.After(time.Second)
				}
				<-time.After(2 * time.Hour)
				synctest.Wait()
				checkEmpty(t, all)
			})
		})
	}
}

// TestQueueIsBounded has requests come while the budget is used up. Receive buffers contain 128 KiB of each.
func TestQueueIsBounded(t *testing.T) {
	sameConn := func(int) source { return client("a", 1) }
	samePeer := func(i int) source { return client("a", i) }
	others := func(i int) source { return client(fmt.Sprint("client", i), 1) }
	for name, tc := range map[string]struct {
		from  func(i int) source
		limit int64
		size  int64
		want  int
	}{
		"small requests of all":          {others, 1 << 30, 1, maxQueued},
		"small requests of one address":  {samePeer, 1 << 30, 1, maxQueued / 2},
		"large requests of all":          {others, 16 << 20, 6 << 20, 64},    // half of the budget
		"large requests of one address":  {samePeer, 16 << 20, 6 << 20, 32},  // a fourth
		"large requests of a connection": {sameConn, 128 << 20, 6 << 20, 12}, // three fourths of 2 MiB
		"budget of one request":          {sameConn, 6 << 20, 6 << 20, 12},
		"tiny budget":                    {sameConn, 100, 100, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBudget(tc.limit, serve.DefaultWindows, "")
				ctx, leave := context.WithCancel(t.Context())
				hold(ctx, b, client("first", 1), "", tc.limit)
				for i := range tc.want {
					if result := hold(ctx, b, tc.from(i), "", tc.size); len(result) > 0 {
						t.Errorf("request %d: %v, want it to wait", i, <-result)
					}
				}
				checkExhausted(t, <-hold(ctx, b, tc.from(tc.want), "", tc.size))
				leave()
				synctest.Wait()
				checkEmpty(t, b)
			})
		})
	}
}

// TestAddressLeavesMemory has one address send requests that hang.
func TestAddressLeavesMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(1000)
		ctx, leave := context.WithCancel(t.Context())
		var last <-chan error
		for i := range 15 {
			last = hold(ctx, b, client("a", i), "", 60)
		}
		if got := b.Reserved(); got != 720 {
			t.Errorf("%d bytes are reserved, want 720: three fourths of the budget, and what fits of them", got)
		}
		for i := range 2 {
			if err := <-hold(ctx, b, client("b", i), "", 100); err != nil {
				t.Errorf("another address: %v", err)
			}
		}
		checkExhausted(t, <-last, "requests from a use 720 bytes", "750")
		leave()
		synctest.Wait()
		checkEmpty(t, b)
	})
}

// TestFunctionsTakeTurns has 14 requests of 100 bytes for a function of which 9 are evaluated at once.
func TestFunctionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(1600)
		var evaluated []*Reservation
		for i := range 12 {
			go func() {
				r := b.newReservation(client("a", 1))
				if err := r.acquire(t.Context(), 100); err != nil {
					t.Error(err)
				}
				if err := r.Claim(t.Context(), "fn:v1"); err != nil {
					t.Errorf("request %d: %v", i, err)
				}
				evaluated = append(evaluated, r)
			}()
			synctest.Wait()
		}
		if len(evaluated) != 9 || b.Queued() != 3 {
			t.Fatalf("%d requests are evaluated and %d wait, want 9 and 3", len(evaluated), b.Queued())
		}
		for i := range 12 {
			<-time.After(stuckTimeout) // each evaluation takes long
			if err := evaluated[i].Answer(t.Context(), 100); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if want := min(10+i, 12); len(evaluated) != want {
				t.Errorf("after %d answers %d requests were evaluated, want %d", i+1, len(evaluated), want)
			}
			evaluated[i].release()
		}
		checkEmpty(t, b)
	})
}

// TestStuckFunctionGivesWay has requests for a function that hangs use up their address's share, and a request for
// another function of the address.
func TestStuckFunctionGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(1600)
		ctx, leave := context.WithCancel(t.Context())
		var crowd []<-chan error
		for range 12 {
			crowd = append(crowd, hold(ctx, b, client("porch", 1), "stuck:v1", 100))
		}
		<-time.After(time.Hour)
		synctest.Wait()
		for i, result := range crowd {
			if len(result) > 0 != (i < 9) {
				t.Errorf("request %d has a result: %v, want nine evaluated and three that wait: nobody needs their memory",
					i, len(result) > 0)
			}
		}
		begin := time.Now()
		other := hold(ctx, b, client("porch", 1), "other:v1", 100)
		if err := <-other; err != nil || time.Since(begin) > stuckTimeout {
			t.Errorf("another function's request: %v after %v", err, time.Since(begin))
		}
		rejected := 0
		for _, result := range crowd[9:] {
			if len(result) > 0 {
				rejected++
				checkExhausted(t, <-result, "no evaluation of stuck:v1 has ended for 1m0s", "900", "FNR_SOME_BYTES")
			}
		}
		if rejected != 1 {
			t.Errorf("%d requests of the stuck function are rejected, want one: others need the memory of one", rejected)
		}
		leave()
		synctest.Wait()
		checkEmpty(t, b)
	})
}

// TestClaimNamesAnotherFunction has a request whose constraint leads to another name.
func TestClaimNamesAnotherFunction(t *testing.T) {
	b := newTestBudget(1600)
	r := b.newReservation(client("a", 1))
	if err := r.acquire(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	for _, function := range []string{"fn:>=1", "fn:v1"} {
		if err := r.Claim(t.Context(), function); err != nil {
			t.Error(err)
		}
	}
	if len(b.functions) != 1 || b.functions["fn:v1"].bytes != 100 {
		t.Errorf("functions use %v", b.functions)
	}
	r.Fail()
	r.release()
	checkEmpty(t, b)
}

// TestUnreadAnswersLeaveMemory has answers of 60 bytes to requests of one byte that a client does not read.
func TestUnreadAnswersLeaveMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(1000)
		var written, dropped atomic.Int64
		for i := range 20 {
			go func() {
				r := b.newReservation(client("a", i))
				defer r.release()
				if err := r.acquire(t.Context(), 1); err != nil {
					t.Error(err)
				}
				<-time.After(time.Second)
				begin := time.Now()
				if err := r.Answer(t.Context(), 60); err != nil {
					dropped.Add(1)
					checkExhausted(t, err, "not read")
					if waited := time.Since(begin); waited != answerTimeout {
						t.Errorf("an answer waits for %v", waited)
					}
					return
				}
				written.Add(1)
				<-time.After(time.Minute)
			}()
		}
		<-time.After(2 * answerTimeout)
		if written.Load() != 14 || dropped.Load() != 6 {
			t.Errorf("%d answers are written and %d dropped, want 14, seven eighths of the budget, and 6",
				written.Load(), dropped.Load())
		}
		if err := <-hold(t.Context(), b, client("b", 1), "", 100); err != nil {
			t.Error(err)
		}
		<-time.After(time.Hour)
	})
}

// TestReadAnswersAreNotDropped has a client that reads have many answers that are larger than their requests.
func TestReadAnswersAreNotDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(1000)
		for i := range 200 {
			go func() {
				r := b.newReservation(client("a", 1))
				defer r.release()
				if err := r.acquire(t.Context(), 50); err != nil {
					t.Error(err)
				}
				<-time.After(10 * time.Millisecond)
				if err := r.Answer(t.Context(), int64(100+i%20*20)); err != nil {
					t.Errorf("answer %d: %v", i, err)
				}
				<-time.After(20 * time.Millisecond)
			}()
			<-time.After(12 * time.Millisecond)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		checkEmpty(t, b)
	})
}

// TestAnswersOfAFullAddressAreWritten has an address use up its share: answers that are a little larger than their
// requests are written at once.
func TestAnswersOfAFullAddressAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(1000)
		ctx, leave := context.WithCancel(t.Context())
		r := b.newReservation(client("a", 1))
		if err := r.acquire(ctx, 50); err != nil {
			t.Fatal(err)
		}
		hold(ctx, b, client("a", 2), "", 700)
		hold(ctx, b, client("b", 2), "", 250)
		begin := time.Now()
		if err := r.Answer(ctx, 100); err != nil || time.Since(begin) > 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		r.release()
		leave()
		synctest.Wait()
		checkEmpty(t, b)
	})
}

// TestCallersThatLeaveAreNotQueued has callers leave in each stage, and requests behind them that fit.
func TestCallersThatLeaveAreNotQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBudget(1600)
		all, leaveAll := context.WithCancel(t.Context())
		hold(all, b, client("a", 1), "fn:v1", 900)
		for name, size := range map[string]int64{"fn:v1": 100, "": 1000} {
			ctx, leave := context.WithCancel(t.Context())
			left := hold(ctx, b, client("a", 1), name, size)
			next := hold(all, b, client("a", 1), "", 50)
			leave()
			if err := <-left; fault.Of(err) != fault.Canceled {
				t.Errorf("%v of class %v, want Canceled", err, fault.Of(err))
			}
			if err := <-next; err != nil {
				t.Error(err)
			}
		}
		leaveAll()
		synctest.Wait()
		checkEmpty(t, b)
	})
}

// TestSurplusIsGivenBack has a request without a length, for which the largest size is reserved until it has come.
func TestSurplusIsGivenBack(t *testing.T) {
	b := newTestBudget(1600)
	r := b.newReservation(client("a", 1))
	if err := r.acquire(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	r.shrink(10)
	r.shrink(2000)
	if got := b.Reserved(); got != 10 {
		t.Errorf("%d bytes are reserved, want 10", got)
	}
	r.release()
	checkEmpty(t, b)
}
