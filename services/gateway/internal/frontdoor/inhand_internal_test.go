package frontdoor

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
