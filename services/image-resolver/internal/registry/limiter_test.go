// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// network is a transport in which some hosts swallow what is sent to them, and the
// others have no authentication.
type network struct {
	dead map[string]bool
	// polite dead hosts answer that they are registries, and begin an answer to all else.
	polite bool

	mu        sync.Mutex
	now, most int
}

func newNetwork(dead int) *network {
	n := &network{dead: make(map[string]bool)}
	for i := range dead {
		n.dead[fmt.Sprintf("dead%d.example", i)] = true
	}
	return n
}

func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.now++
	n.most = max(n.most, n.now)
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.now--
		n.mu.Unlock()
	}()
	switch {
	case n.dead[req.URL.Host] && n.polite && req.URL.Path != "/v2/":
		body := &unendingBody{ctx: req.Context(), left: 1, sent: new(atomic.Int64)}
		return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: body, Request: req}, nil
	case n.dead[req.URL.Host] && !n.polite:
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: http.NoBody, Request: req}, nil
}

// fetchManifest asks for a manifest.
func fetchManifest(ctx context.Context, c *registry.Client, repository string) error {
	return c.With(ctx, repository, func(ctx context.Context, s *registry.Session) error {
		_, err := s.Manifest(ctx, "v1")
		return err
	})
}

// fetch opens a session.
func fetch(ctx context.Context, c *registry.Client, repository string) error {
	return c.With(ctx, repository, func(context.Context, *registry.Session) error { return nil })
}

func TestADeadRegistryDoesNotDelayAnother(t *testing.T) {
	tests := map[string]struct {
		reason  string
		dead    int // registries
		mirrors map[string][]string
		asked   string
		takes   time.Duration
	}{
		"one dead": {"others have slots of their own", 1, nil, "alive.example/fn", 0},
		"several":  {"registries that do not answer get few slots", 3, nil, "alive.example/fn", 0},
		"many":     {"and half of all at most", 100, nil, "alive.example/fn", 0},
		"dead mirror": {
			"a mirror takes half of the time at most", 1,
			map[string][]string{"alive.example": {"dead0.example/x"}},
			"alive.example/fn", 15 * time.Second,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(tc.dead)
				c := newClient(t, registry.Config{Transport: n, Concurrent: 16, Mirrors: tc.mirrors})
				ctx, stop := context.WithCancel(t.Context())
				if tc.mirrors == nil { // it is known to answer
					if err := fetch(ctx, c, tc.asked); err != nil {
						t.Fatal(err)
					}
				}
				var waiting sync.WaitGroup
				for host := range n.dead {
					for range 100 {
						waiting.Go(func() {
							if err := fetch(ctx, c, host+"/fn"); !errors.Is(err, context.Canceled) {
								t.Errorf("%v, want that it waits", err)
							}
						})
					}
				}
				synctest.Wait()
				begin := time.Now()
				limited, cancel := context.WithTimeout(ctx, 30*time.Second)
				defer cancel()
				if err := fetch(limited, c, tc.asked); err != nil || time.Since(begin) != tc.takes {
					t.Errorf("%v after %v, want success after %v: %s", err, time.Since(begin), tc.takes, tc.reason)
				}
				stop()
				waiting.Wait()
			})
		})
	}
}

func TestFetchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(100)
		c := newClient(t, registry.Config{Transport: n, Concurrent: 16})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var waiting sync.WaitGroup
		for host := range n.dead {
			waiting.Go(func() {
				if err := fetch(ctx, c, host+"/fn"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want the deadline", err)
				}
			})
		}
		waiting.Wait()
		if n.most != 8 {
			t.Errorf("%d requests at a time, want 8: half of all are for registries that answer", n.most)
		}
	})
}

// hanging has credentials whose helper hangs, for some registries.
type hanging struct{ fixed }

func (hanging) Lookup(ctx context.Context, repository string) (c credentials.Credential, err error) {
	if strings.HasPrefix(repository, "dead") {
		<-ctx.Done()
		return c, ctx.Err()
	}
	return c, nil
}

// newSmallClient returns one that may fetch 4 images at a time, one from each registry.
func newSmallClient(t *testing.T, cfg registry.Config) *registry.Client {
	t.Helper()
	cfg.Transport = newNetwork(0)
	cfg.Concurrent = 4
	return newClient(t, cfg)
}

func TestAHelperThatHangsTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSmallClient(t, registry.Config{Credentials: hanging{}})
		ctx, stop := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for i := range 10 {
			waiting.Go(func() { _ = fetch(ctx, c, fmt.Sprintf("dead%d.example/fn", i)) })
		}
		synctest.Wait()
		if err := fetch(ctx, c, "alive.example/fn"); err != nil {
			t.Error(err)
		}
		stop()
		waiting.Wait()
	})
}

func TestASlotIsReleased(t *testing.T) {
	tests := map[string]struct {
		reason string
		use    func(ctx context.Context) error
	}{
		"success": {"the usual end", func(context.Context) error { return nil }},
		"failure": {"another end", func(context.Context) error { return errors.New("no") }},
		"panic":   {"a defect", func(context.Context) error { panic("a defect") }},
		"cancel":  {"its caller has left", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSmallClient(t, registry.Config{Credentials: fixed{}})
				for range 5 { // more than there are slots
					func() {
						defer func() { _ = recover() }()
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						_ = c.With(ctx, "r.example/fn", func(ctx context.Context, _ *registry.Session) error { return tc.use(ctx) })
					}()
				}
				begin := time.Now()
				if err := fetch(t.Context(), c, "r.example/fn"); err != nil || time.Since(begin) != 0 {
					t.Errorf("%v after %v, want a slot at once: %s", err, time.Since(begin), tc.reason)
				}
			})
		})
	}
}

func TestSlotsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSmallClient(t, registry.Config{Credentials: fixed{}})
		var mu sync.Mutex
		var served []int
		var waiting sync.WaitGroup
		for i := range 10 {
			waiting.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i == 5 { // leaves while it waits
					time.AfterFunc(time.Second, cancel)
				}
				_ = c.With(ctx, "r.example/fn", func(context.Context, *registry.Session) error {
					<-time.After(time.Minute)
					mu.Lock()
					defer mu.Unlock()
					served = append(served, i)
					return nil
				})
			})
			synctest.Wait()
		}
		waiting.Wait()
		if want := []int{0, 1, 2, 3, 4, 6, 7, 8, 9}; !slices.Equal(served, want) {
			t.Errorf("served in the order %v, want %v", served, want)
		}
	})
}
