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
	"github.com/krm-function-runner/function-runner/libs/serve"
)

// peers returns sources that share nothing.
func peers(n int) []source {
	sources := make([]source, n)
	for i := range sources {
		sources[i] = source{conn: fmt.Sprintf("10.0.0.%d:5000", i), peer: fmt.Sprintf("10.0.0.%d", i)}
	}
	return sources
}

// length returns how many requests are queued.
func length(b *Budget) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

func TestReservationsGrow(t *testing.T) {
	tests := map[string]struct {
		reason      string
		others      int64
		held, grow  int64
		rejected    bool
		want, after int64 // reserved while the request is there, and after it
	}{
		"fits":          {"", 40, 0, 60, false, 100, 40},
		"does not fit":  {"reservations stay within the budget", 40, 0, 61, true, 40, 40},
		"grown":         {"what is reserved already is not counted twice", 40, 50, 60, false, 100, 40},
		"grown too far": {"it keeps what it had until it ends", 40, 50, 61, true, 90, 40},
		"shrunk":        {"a reservation is never smaller than before", 40, 50, 10, false, 90, 40},
		"alone":         {"the only request is never rejected: it would be for ever", 0, 0, 1000, false, 1000, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			from := peers(2)
			all := &Budget{limit: 100}
			others, r := &Reservation{budget: all, from: from[0]}, &Reservation{budget: all, from: from[1]}
			if err := others.grow(tc.others); err != nil {
				t.Fatal(err)
			}
			if err := r.grow(tc.held); err != nil {
				t.Fatal(err)
			}
			err := r.grow(tc.grow)
			_, hint := fault.RetryAfter(err)
			if (err != nil) != tc.rejected || tc.rejected && (fault.Of(err) != fault.Exhausted || !hint) {
				t.Errorf("grow = %v, want rejected %v with a hint: %s", err, tc.rejected, tc.reason)
			}
			if got := all.Reserved(); got != tc.want {
				t.Errorf("%d bytes are reserved, want %d: %s", got, tc.want, tc.reason)
			}
			r.release()
			r.release()
			if got := all.Reserved(); got != tc.after {
				t.Errorf("%d bytes are reserved afterwards, want %d", got, tc.after)
			}
		})
	}
}

// request is one that comes in TestRequestsAreQueued, a second after the one before.
type request struct {
	from  source
	size  int64
	want  fault.Class   // -1 if it is admitted
	waits time.Duration // until then
}

// TestRequestsAreQueued has requests come while one of another peer has 60 bytes of 100.
func TestRequestsAreQueued(t *testing.T) {
	const timeout = 10 * time.Second
	p := peers(4)
	tests := map[string]struct {
		reason   string
		ends     time.Duration // of the first request
		lasts    time.Duration // of the others
		requests []request
	}{
		"fits":     {"no request is queued without need", time.Hour, time.Second, []request{{p[1], 40, -1, 0}}},
		"in time":  {"the memory comes in time", 5 * time.Second, time.Second, []request{{p[1], 50, -1, 5 * time.Second}}},
		"too long": {"a caller has to hear of it", time.Minute, time.Second, []request{{p[1], 50, fault.Exhausted, timeout}}},
		"overtakes": {
			"a small request does not wait for a large one", time.Minute, time.Second,
			[]request{{p[1], 50, fault.Exhausted, timeout}, {p[2], 20, -1, 0}, {p[2], 20, -1, 0}},
		},
		"overtakes no more": {
			"as many bytes as the budget have overtaken the first", time.Minute, time.Second / 2,
			[]request{
				{p[1], 50, fault.Exhausted, timeout},
				{p[2], 40, -1, 0},
				{p[3], 40, -1, 0},
				{p[2], 40, -1, 0},
				{p[3], 1, -1, 6 * time.Second},
			},
		},
		"too many": {
			"the queue is bounded too", 5 * time.Second, time.Second,
			[]request{{p[1], 50, -1, 5 * time.Second}, {p[2], 60, fault.Exhausted, 0}},
		},
		"of a peer": {
			"one peer has half of the queue", 5 * time.Second, time.Second,
			[]request{
				{p[1], 45, -1, 5 * time.Second}, {p[1], 45, fault.Exhausted, 0}, {p[2], 45, -1, 3 * time.Second},
			},
		},
		"larger": {
			"one larger than the budget is admitted alone", 5 * time.Second, time.Second,
			[]request{{p[1], 1000, -1, 5 * time.Second}},
		},
		"as soon as": {
			"as soon as they fit, and one after the other", time.Second / 2, 3 * time.Second,
			[]request{
				{p[1], 70, -1, time.Second / 2},
				{p[2], 55, -1, 2500 * time.Millisecond},
				{p[3], 45, -1, 1500 * time.Millisecond},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := &Budget{limit: 100, timeout: timeout}
				first := &Reservation{budget: all, from: p[0]}
				if err := first.acquire(t.Context(), 60); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(tc.ends, first.release)
				for i, req := range tc.requests {
					go func() {
						r := &Reservation{budget: all, from: req.from}
						begin := time.Now()
						err := r.acquire(t.Context(), req.size)
						if waits := time.Since(begin); waits != req.waits {
							t.Errorf("request %d of %d bytes waits for %v, want %v: %s", i, req.size, waits, req.waits, tc.reason)
						}
						_, hint := fault.RetryAfter(err)
						if (err == nil) != (req.want < 0) || err != nil && (fault.Of(err) != req.want || !hint) {
							t.Errorf("request %d of %d bytes: %v of class %v, want %v: %s",
								i, req.size, err, fault.Of(err), req.want, tc.reason)
						}
						if err == nil {
							r.received(req.size)
						}
						<-time.After(tc.lasts)
						r.release()
					}()
					<-time.After(time.Second)
				}
				<-time.After(2 * time.Hour)
				synctest.Wait() // for what these hours have released
				if all.reserved != 0 || len(all.queue) != 0 || len(all.reading.conns)+len(all.reading.peers) != 0 {
					t.Errorf("afterwards %d bytes are reserved, %d requests queued, %v and %v read",
						all.reserved, len(all.queue), all.reading.conns, all.reading.peers)
				}
			})
		})
	}
}

// greedyClients are ways in which one client makes many requests of 60 bytes at a time, and what it
// gets of a budget of 1000 bytes while it neither sends them to their end nor reads answers.
var greedyClients = map[string]struct {
	from   func(i int) source
	want   int64
	reason string
}{
	"one connection": {
		func(int) source { return source{conn: "10.0.0.1:1", peer: "10.0.0.1"} }, 240,
		"a fourth of the budget, and what fits of it",
	},
	"one peer": {
		func(i int) source { return source{conn: fmt.Sprintf("10.0.0.1:%d", i), peer: "10.0.0.1"} }, 480,
		"a half of the budget",
	},
}

// other is where another client is.
var other = source{conn: "10.0.0.2:1", peer: "10.0.0.2"}

// TestSlowUploadsLeaveMemory has clients announce large requests and send none of them.
func TestSlowUploadsLeaveMemory(t *testing.T) {
	for name, tc := range greedyClients {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := &Budget{limit: 1000, timeout: 10 * time.Second}
				for i := range 22 {
					go func() {
						r := &Reservation{budget: all, from: tc.from(i)}
						if err := r.acquire(t.Context(), 60); err != nil && fault.Of(err) != fault.Exhausted {
							t.Error(err)
						}
						<-time.After(time.Minute)
						r.release()
					}()
				}
				synctest.Wait()
				if got := all.Reserved(); got != tc.want {
					t.Errorf("%d bytes are reserved, want %d: %s", got, tc.want, tc.reason)
				}
				for range 5 { // they are received at once, and evaluated for a while
					begin, r := time.Now(), &Reservation{budget: all, from: other}
					if err := r.acquire(t.Context(), 100); err != nil || time.Since(begin) > 0 {
						t.Errorf("another client waits for %v: %v", time.Since(begin), err)
					}
					r.received(100)
					defer r.release()
				}
				<-time.After(time.Hour)
			})
		})
	}
}

// TestEvaluationsLeaveMemory has one client send requests whose evaluations hang.
func TestEvaluationsLeaveMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &Budget{limit: 1000, timeout: 10 * time.Second}
		p := peers(2)
		for i := range 20 {
			go func() {
				from := source{conn: fmt.Sprintf("%s:%d", p[0].peer, i), peer: p[0].peer}
				r := &Reservation{budget: all, from: from}
				switch err := r.acquire(t.Context(), 60); {
				case err == nil:
					r.received(60)
				case fault.Of(err) != fault.Exhausted || !strings.Contains(err.Error(), "evaluated"):
					t.Errorf("rejected with %v of class %v, want what to do", err, fault.Of(err))
				}
				<-time.After(time.Minute)
				r.release()
			}()
		}
		synctest.Wait()
		if got, want := all.Reserved(), int64(720); got != want {
			t.Errorf("%d bytes are reserved, want %d: three fourths of the budget, and what fits of it", got, want)
		}
		for range 2 {
			begin, r := time.Now(), &Reservation{budget: all, from: p[1]}
			if err := r.acquire(t.Context(), 100); err != nil || time.Since(begin) > 0 {
				t.Errorf("another client waits for %v: %v", time.Since(begin), err)
			}
			r.received(100)
			defer r.release()
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if got, want := all.Reserved(), int64(200); got != want || len(all.peers) != 1 {
			t.Errorf("afterwards %d bytes are reserved, want %d, by %v", got, want, all.peers)
		}
	})
}

// TestLargeRequestsOfABusyConnection has one wait until nothing else of its connection is
// read, while small requests come all the time: they overtake it for a while only.
func TestLargeRequestsOfABusyConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := peers(1)[0]
		all := &Budget{limit: 1000, timeout: time.Minute}
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() {
				for ctx.Err() == nil { // each is read for 100 ms
					r := &Reservation{budget: all, from: from}
					if err := r.acquire(ctx, 10); err == nil {
						<-time.After(100 * time.Millisecond)
					}
					r.release()
				}
			}()
			<-time.After(30 * time.Millisecond)
		}
		begin, large := time.Now(), &Reservation{budget: all, from: from}
		if err := large.acquire(t.Context(), 400); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < 500*time.Millisecond || took > 2*time.Second {
			t.Errorf("it waits for %v, want about a second: 250 bytes overtake it at 300 per second", took)
		}
		large.release()
		cancel()
		<-time.After(time.Second)
	})
}

// TestUnreadRequestsLeaveTheWindow has many requests of one connection queued: what of
// them is in the receive buffers must not fill the connection's window.
func TestUnreadRequestsLeaveTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peers(2)
		all := NewBehind(serve.Windows{Request: 512 << 10, Connection: 6 << 20}, 1<<30, time.Second, "")
		first := &Reservation{budget: all, from: p[0]}
		if err := first.acquire(t.Context(), 1<<30); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			go func() { _ = (&Reservation{budget: all, from: p[1]}).acquire(t.Context(), 1<<20) }()
		}
		synctest.Wait()
		if got, want := length(all), 9; got != want { // three fourths of 6 MiB
			t.Errorf("%d requests are queued, want %d", got, want)
		}
		<-time.After(time.Minute)
	})
}

func TestTheQueueHasALength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peers(2000)
		all := &Budget{limit: 10000, timeout: time.Second}
		first := &Reservation{budget: all, from: p[0]}
		if err := first.acquire(t.Context(), 10000); err != nil {
			t.Fatal(err)
		}
		for i := range 1999 {
			go func() { _ = (&Reservation{budget: all, from: p[i+1]}).acquire(t.Context(), 1) }()
		}
		synctest.Wait()
		if got := length(all); got != maxQueued {
			t.Errorf("%d requests are queued, want %d", got, maxQueued)
		}
		<-time.After(time.Minute)
	})
}

func TestACallerThatLeavesIsQueuedNoMore(t *testing.T) {
	p := peers(2)
	all := &Budget{limit: 100, timeout: time.Hour}
	first, r := &Reservation{budget: all, from: p[0]}, &Reservation{budget: all, from: p[1]}
	if err := first.acquire(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.acquire(ctx, 1); fault.Of(err) != fault.Canceled {
		t.Errorf("acquire = %v of class %v, want canceled", err, fault.Of(err))
	}
	first.release()
	if err := r.acquire(ctx, 1); err != nil {
		t.Errorf("with memory at once: %v", err)
	}
}

// TestACallerThatLeavesAdmitsTheNext has a request that may not be overtaken any more, and
// one behind it that would fit.
func TestACallerThatLeavesAdmitsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peers(3)
		all := &Budget{limit: 100, timeout: time.Hour}
		first := &Reservation{budget: all, from: p[0]}
		if err := first.acquire(t.Context(), 60); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		go func() { _ = (&Reservation{budget: all, from: p[1]}).acquire(ctx, 50) }()
		synctest.Wait()
		all.mu.Lock()
		all.queue[0].overtaken = 100
		all.mu.Unlock()
		admitted := make(chan error, 1)
		go func() { admitted <- (&Reservation{budget: all, from: p[2]}).acquire(t.Context(), 20) }()
		synctest.Wait()
		if got := length(all); got != 2 {
			t.Fatalf("%d requests are queued, want 2", got)
		}
		begin := time.Now()
		leave()
		if err := <-admitted; err != nil || time.Since(begin) > 0 {
			t.Errorf("the next request waits for %v: %v", time.Since(begin), err)
		}
	})
}
