// SPDX-License-Identifier: Apache-2.0

package membudget

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// porch is a client with one connection.
var porch = source{conn: "10.0.0.1:5000", peer: "10.0.0.1"}

// crowd has requests of size bytes evaluated by a function until ctx ends, and returns a channel with the
// errors of the requests that are not.
func crowd(ctx context.Context, t *testing.T, b *Budget, from source, function string, n int, size int64) <-chan error {
	t.Helper()
	rejected := make(chan error, n)
	for range n {
		go func() {
			r := b.open(from)
			defer r.release()
			if err := r.acquire(ctx, size); err != nil {
				rejected <- err
				return
			}
			if err := r.Claim(ctx, function); err != nil {
				rejected <- err
				return
			}
			<-ctx.Done()
		}()
		synctest.Wait() // one after the other
	}
	return rejected
}

// admitted reports whether a request is read and evaluated at once.
func admitted(t *testing.T, b *Budget, from source, function string, size int64) {
	t.Helper()
	begin := time.Now()
	r := b.open(from)
	defer r.release()
	if err := r.acquire(t.Context(), size); err != nil {
		t.Errorf("a request for %s is rejected: %v", function, err)
		return
	}
	if err := r.Claim(t.Context(), function); err != nil || time.Since(begin) > 0 {
		t.Errorf("a request for %s is evaluated after %v: %v", function, time.Since(begin), err)
	}
}

// isEmpty reports as an error what a budget has when all requests have ended.
func isEmpty(t *testing.T, b *Budget) {
	t.Helper()
	f := &b.functions
	if b.Reserved() != 0 || len(f.requests)+len(f.streams)+len(f.bytes)+len(f.excess)+len(f.held) != 0 {
		t.Errorf("%d bytes are reserved afterwards, claims are %+v", b.Reserved(), f)
	}
}

// TestFunctionsLeaveMemory has a crowd for one function, in a budget of which one peer may have 1200 bytes,
// and one function 900.
func TestFunctionsLeaveMemory(t *testing.T) {
	tests := map[string]struct {
		reason   string
		crowd    []source // with four requests of 100 bytes each
		other    source
		size     int64
		rejected int
	}{
		"a part":      {"as long as there is memory, others have it", []source{porch, porch}, porch, 300, 0},
		"a client":    {"the newest of the crowd gives way", []source{porch, porch, porch}, porch, 100, 1},
		"a large one": {"as many as are needed do", []source{porch, porch, porch}, porch, 250, 3},
		"several":     {"also for other clients", []source{porch, porch, porch, peers(9)[7]}, peers(9)[8], 200, 2},
		"another client": {
			"what one client may not have is there for others",
			[]source{porch, porch, porch},
			peers(9)[8], 400, 0,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(1600, time.Minute, "FNR_SOME_BYTES")
				ctx, leave := context.WithCancel(t.Context())
				var rejected []<-chan error
				for _, from := range tc.crowd {
					rejected = append(rejected, crowd(ctx, t, b, from, "crowd:v1", 4, 100))
				}
				<-time.After(time.Hour)
				admitted(t, b, tc.other, "other:v1", tc.size)
				synctest.Wait()
				n := 0
				for _, errs := range rejected {
					for ; len(errs) > 0; n++ {
						err := <-errs
						if _, hint := fault.RetryAfter(err); fault.Of(err) != fault.Exhausted || !hint ||
							!strings.Contains(err.Error(), "crowd:v1") || !strings.Contains(err.Error(), "900") ||
							!strings.Contains(err.Error(), "FNR_SOME_BYTES") {
							t.Errorf("got %v, want function, bound, setting and a hint", err)
						}
					}
				}
				if n != tc.rejected {
					t.Errorf("%d of the crowd are rejected, want %d: %s", n, tc.rejected, tc.reason)
				}
				leave()
				synctest.Wait()
				isEmpty(t, b)
			})
		})
	}
}

// TestExcessRequestsTakeTurns has requests that wait for others of their function, whose evaluations
// end one by one.
func TestExcessRequestsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1600, 0, "")
		var all []*Reservation
		evaluated := make(chan int, 12)
		for i := range 12 {
			r := b.open(porch)
			if err := r.acquire(t.Context(), 100); err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
			go func() {
				if err := r.Claim(t.Context(), "crowd:v1"); err != nil {
					t.Error(err)
				}
				evaluated <- i
			}()
			synctest.Wait()
		}
		if len(evaluated) != 9 || b.Excess() != 3 {
			t.Fatalf("%d requests are evaluated, and %d wait, want 9 and 3", len(evaluated), b.Excess())
		}
		for want := range 12 {
			if got := <-evaluated; got != want {
				t.Errorf("request %d is evaluated, want %d: the oldest first", got, want)
			}
			all[want].Evaluated(0)
			synctest.Wait()
		}
		for _, r := range all {
			r.release()
		}
		isEmpty(t, b)
	})
}

// TestFunctionsLeaveStreams has a crowd on one connection that takes little memory.
func TestFunctionsLeaveStreams(t *testing.T) {
	tests := map[string]struct {
		reason                     string
		crowd, rejected, evaluated int
	}{
		"few":           {"all are evaluated", 180, 0, 180},
		"streams left":  {"the client does not wait for streams: some wait for others of the function", 220, 0, 188},
		"no streams":    {"others on the connection get streams", 250, 16, 188},
		"half of those": {"only as many are rejected as others may need", 240, 6, 188},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(1<<20, time.Minute, "")
				ctx, leave := context.WithCancel(t.Context())
				rejected := crowd(ctx, t, b, porch, "crowd:v1", tc.crowd, 1)
				<-time.After(streamTimeout - 1)
				if len(rejected) > 0 {
					t.Errorf("%v, before a crowd that is served would have been", <-rejected)
				}
				<-time.After(time.Hour)
				if got := len(rejected); got != tc.rejected || b.functions.streams[claim{porch.conn, "crowd:v1"}] != tc.evaluated {
					t.Errorf("%d are rejected, %d evaluated, want %d and %d: %s", got,
						b.functions.streams[claim{porch.conn, "crowd:v1"}], tc.rejected, tc.evaluated, tc.reason)
				}
				if tc.rejected > 0 {
					err := <-rejected
					if _, hint := fault.RetryAfter(err); !hint || !strings.Contains(err.Error(), "crowd:v1") ||
						!strings.Contains(err.Error(), "250 streams") {
						t.Errorf("got %v, want function, bound and a hint", err)
					}
				}
				admitted(t, b, porch, "other:v1", 1)
				admitted(t, b, source{conn: "10.0.0.1:6000", peer: porch.peer}, "crowd:v1", 1)
				leave()
				synctest.Wait()
				isEmpty(t, b)
			})
		})
	}
}

// TestExcessRequestsLeave has excess requests whose callers leave, or which turn out to be for another
// function.
func TestExcessRequestsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1600, 0, "")
		ctx, leave := context.WithCancel(t.Context())
		crowd(ctx, t, b, porch, "crowd:v1", 10, 100)
		short, cancel := context.WithCancel(t.Context())
		errs := crowd(short, t, b, porch, "crowd:v1", 1, 100)
		cancel()
		if err := <-errs; fault.Of(err) != fault.Canceled {
			t.Errorf("a caller who leaves gets %v", err)
		}
		r := b.open(porch)
		if err := r.acquire(ctx, 100); err != nil {
			t.Fatal(err)
		}
		for _, function := range []string{"crowd:>=1", "other:v1"} { // a constraint, and what it led to
			if err := r.Claim(ctx, function); err != nil {
				t.Error(err)
			}
		}
		if got := fmt.Sprint(b.functions.bytes); got != "map[crowd:v1:900 other:v1:100]" {
			t.Errorf("functions have %s", got)
		}
		r.release()
		leave()
		synctest.Wait()
		isEmpty(t, b)
	})
}

// TestExcessRequestsAreBounded has requests that would wait on many connections.
func TestExcessRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1<<40, 0, "")
		ctx, leave := context.WithCancel(t.Context())
		rejected := 0
		for i := range 20 {
			from := source{conn: fmt.Sprintf("10.0.0.1:%d", i), peer: porch.peer}
			rejected += len(crowd(ctx, t, b, from, "crowd:v1", 240, 1))
		}
		if want := 20*(240-functionStreams) - maxExcess; b.Excess() != maxExcess || rejected != want {
			t.Errorf("%d requests wait, %d are rejected, want %d and %d", b.Excess(), rejected, maxExcess, want)
		}
		leave()
		synctest.Wait()
		isEmpty(t, b)
	})
}
