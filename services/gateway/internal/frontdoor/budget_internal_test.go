package frontdoor

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

func TestInHand(t *testing.T) {
	tests := map[string]struct {
		reason      string
		others      int64
		held, grow  int64
		refused     bool
		want, after int64 // held while the request is there, and after it
	}{
		"room":          {"", 40, 0, 60, false, 100, 40},
		"no room":       {"what is held stays below the limit", 40, 0, 61, true, 40, 40},
		"grown":         {"what a request holds already is not counted twice", 40, 50, 60, false, 100, 40},
		"grown too far": {"it keeps what it had until it ends", 40, 50, 61, true, 90, 40},
		"shrunk":        {"a request never holds less than it did", 40, 50, 10, false, 90, 40},
		"alone":         {"the only request is never refused: it would be for ever", 0, 0, 1000, false, 1000, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all := &inHand{limit: 100}
			others, s := &share{of: all}, &share{of: all}
			if err := others.grow(tc.others); err != nil {
				t.Fatal(err)
			}
			if err := s.grow(tc.held); err != nil {
				t.Fatal(err)
			}
			err := s.grow(tc.grow)
			if _, hint := fault.RetryAfter(err); (err != nil) != tc.refused || tc.refused && (fault.Of(err) != fault.Exhausted || !hint) {
				t.Errorf("grow = %v, want refused %v with a hint: %s", err, tc.refused, tc.reason)
			}
			if got := all.now(); got != tc.want {
				t.Errorf("%d bytes are held, want %d: %s", got, tc.want, tc.reason)
			}
			s.release()
			s.release()
			if got := all.now(); got != tc.after {
				t.Errorf("%d bytes are held afterwards, want %d", got, tc.after)
			}
		})
	}
}

// TestRequestsWaitForRoom has requests come while one of 60 bytes is held out of 100.
func TestRequestsWaitForRoom(t *testing.T) {
	const patience = 10 * time.Second
	tests := map[string]struct {
		reason string
		ends   time.Duration // of what is held
		sizes  []int64       // of those who come, one after the other
		want   []fault.Class // -1 for those who get in
	}{
		"room":     {"nobody waits without need", time.Hour, []int64{40}, []fault.Class{-1}},
		"patient":  {"room comes in time", 5 * time.Second, []int64{50}, []fault.Class{-1}},
		"too long": {"a caller is better off to know", time.Minute, []int64{50}, []fault.Class{fault.Exhausted}},
		"order":    {"a small one does not overtake for ever", time.Minute, []int64{50, 20}, []fault.Class{fault.Exhausted, -1}},
		"too many": {"those that wait are bounded too", 5 * time.Second, []int64{50, 60}, []fault.Class{-1, fault.Exhausted}},
		"giant":    {"one larger than all the room goes alone", 5 * time.Second, []int64{1000}, []fault.Class{-1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := &inHand{limit: 100, patience: patience}
				first := &share{of: all}
				if err := first.reserve(t.Context(), 60); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(tc.ends, first.release)
				for i, size := range tc.sizes {
					go func() {
						s := &share{of: all}
						err := s.reserve(t.Context(), size)
						if _, hint := fault.RetryAfter(err); (err == nil) != (tc.want[i] < 0) || err != nil && (fault.Of(err) != tc.want[i] || !hint) {
							t.Errorf("%d bytes: %v of class %v, want %v: %s", size, err, fault.Of(err), tc.want[i], tc.reason)
						}
						<-time.After(time.Second)
						s.release()
					}()
					<-time.After(time.Second)
				}
				<-time.After(2 * time.Hour)
				synctest.Wait() // for what these hours have set free
				if all.held != 0 || len(all.waiting) != 0 {
					t.Errorf("%d bytes are held afterwards, and %d requests wait", all.held, len(all.waiting))
				}
			})
		})
	}
}

func TestACallerWhoLeavesWaitsNoMore(t *testing.T) {
	all := &inHand{limit: 100, patience: time.Hour}
	first, s := &share{of: all}, &share{of: all}
	if err := first.reserve(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.reserve(ctx, 1); fault.Of(err) != fault.Canceled {
		t.Errorf("reserve = %v of class %v, want canceled", err, fault.Of(err))
	}
	first.release()
	if err := s.reserve(ctx, 1); err != nil {
		t.Errorf("with room at once: %v", err)
	}
}

func TestOutputsAreHeld(t *testing.T) {
	all := &inHand{limit: 100}
	first, s := &share{of: all}, &share{of: all}
	if err := first.reserve(t.Context(), 60); err != nil {
		t.Fatal(err)
	}
	if first.add(60); all.now() != 120 {
		t.Errorf("%d bytes are held, want 120", all.now())
	}
	if err := s.reserve(t.Context(), 1); fault.Of(err) != fault.Exhausted {
		t.Errorf("another request is admitted: %v", err)
	}
	if first.release(); all.now() != 0 {
		t.Errorf("%d bytes are held afterwards", all.now())
	}
}

// TestRoomIsTakenBeforeARequestIsRead has a request of which nothing but its length has
// come: another one that does not fit beside it hears so before it sends anything.
func TestRoomIsTakenBeforeARequestIsRead(t *testing.T) {
	h, err := New(Config{MaxMessageBytes: 100, MaxInHandBytes: 100, Telemetry: telemetry.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	send := func(contentType, body string, length int64, next http.HandlerFunc) {
		t.Helper()
		never, _ := io.Pipe()
		r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader(body), never))
		r.ContentLength = length
		r.Header.Set("Content-Type", contentType)
		h.Bounded(next).ServeHTTP(httptest.NewRecorder(), r)
	}
	for name, first := range map[string]struct {
		contentType, body string
		length, want      int64
	}{
		"gRPC":            {"application/grpc", "\x00\x00\x00\x00\x50", -1, 80},
		"gRPC-Web":        {"application/grpc-web+proto", "\x00\x00\x00\x00\x50", 85, 80},
		"Connect":         {"application/json", "", 80, 80},
		"of no length":    {"application/json", "", -1, 0},
		"past the limits": {"application/grpc", "\x00\xff\xff\xff\xff", -1, 100}, // what is too large is not kept
	} {
		t.Run(name, func(t *testing.T) {
			send(first.contentType, first.body, first.length, func(_ http.ResponseWriter, r *http.Request) {
				if got := h.inHand.now(); got != first.want {
					t.Errorf("%d bytes are held, want %d", got, first.want)
				}
				if prefix := make([]byte, len(first.body)); len(prefix) > 0 {
					if _, err := io.ReadFull(r.Body, prefix); err != nil || string(prefix) != first.body {
						t.Errorf("the handler reads %q, %v, want %q", prefix, err, first.body)
					}
				}
				send("application/grpc", "\x00\x00\x00\x00\x1e", -1, func(_ http.ResponseWriter, r *http.Request) {
					if first.want == 0 {
						return // there is room
					}
					if _, err := r.Body.Read(make([]byte, 1)); connect.CodeOf(err) != connect.CodeResourceExhausted {
						t.Errorf("the other request is read: %v, want ResourceExhausted", err)
					}
				})
			})
			if got := h.inHand.now(); got != 0 {
				t.Errorf("%d bytes are held afterwards", got)
			}
		})
	}
}
