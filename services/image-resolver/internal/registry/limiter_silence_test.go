// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// TestFourDeadRegistries has as many registries not answer as would take all slots if each
// took its quarter, each with more callers than slots.
func TestFourDeadRegistries(t *testing.T) {
	tests := map[string]struct {
		reason   string
		answered bool // before they died
		polite   bool // they begin answers
		delay    time.Duration
	}{
		"never answered": {"they get few slots", false, false, 0},
		"died":           {"they lose their slots after two seconds of silence", true, false, 2 * time.Second},
		"begin answers":  {"an answer has to end", false, true, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(4)
				c := newClient(t, registry.Config{Transport: n, Concurrent: 64})
				ctx, stop := context.WithCancel(t.Context())
				dead := n.dead
				n.polite = tc.polite
				if tc.answered {
					n.dead = nil
					for host := range dead {
						if err := fetch(ctx, c, host+"/fn"); err != nil {
							t.Fatal(err)
						}
					}
					n.dead = dead
				}
				var waiting sync.WaitGroup
				for host := range dead {
					for range 100 {
						waiting.Go(func() {
							for ctx.Err() == nil {
								limited, cancel := context.WithTimeout(ctx, 20*time.Second)
								_ = fetchManifest(limited, c, host+"/fn")
								cancel()
							}
						})
					}
				}
				synctest.Wait()
				begin := time.Now()
				for range 5 {
					if err := fetch(ctx, c, "alive.example/fn"); err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(begin); took > tc.delay {
					t.Errorf("delayed for %v, want at most %v: %s", took, tc.delay, tc.reason)
				}
				<-time.After(time.Minute)
				begin = time.Now()
				if err := fetch(ctx, c, "other.example/fn"); err != nil || time.Since(begin) > 0 {
					t.Errorf("a minute later: %v after %v, want no delay", err, time.Since(begin))
				}
				stop()
				waiting.Wait()
			})
		})
	}
}

// unending is a transport whose answers have 4 MiB less one byte, and no end.
type unending struct{ sent atomic.Int64 }

func (e *unending) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: http.NoBody, Request: req}
	if req.URL.Path != "/v2/" {
		resp.Body = &unendingBody{ctx: req.Context(), left: 4<<20 - 1, sent: &e.sent}
	}
	return resp, nil
}

type unendingBody struct {
	ctx  context.Context //nolint:containedctx // a reader has no other way to get it
	left int
	sent *atomic.Int64
}

func (b *unendingBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	n := min(len(p), b.left)
	clear(p[:n])
	b.left -= n
	b.sent.Add(int64(n))
	return n, nil
}

func (b *unendingBody) Close() error { return nil }

func TestAnswersBeingReadAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := new(unending)
		c := newClient(t, registry.Config{Transport: e, Concurrent: 64})
		ctx, stop := context.WithCancel(t.Context())
		var reading sync.WaitGroup
		read := func(host int) {
			reading.Go(func() {
				_ = c.With(ctx, fmt.Sprintf("large%d.example/fn", host), func(ctx context.Context, s *registry.Session) error {
					_, err := s.Manifest(ctx, "v1")
					return err
				})
			})
		}
		for range 16 {
			read(0)
		}
		synctest.Wait()
		if got := e.sent.Load(); got < 8<<20-2 || got > 9<<20 {
			t.Errorf(
				"%d bytes are held of one registry's 16 answers of 4 MiB, want two answers and the beginnings of the others",
				got,
			)
		}
		for host := 1; host < 4; host++ {
			for range 16 {
				read(host)
			}
		}
		synctest.Wait()
		if got := e.sent.Load(); got < 16<<20-4 || got > 20<<20 {
			t.Errorf("%d bytes are held of 64 answers of 4 MiB, want four answers and the beginnings of the others", got)
		}
		stop()
		reading.Wait()
	})
}
