package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// network is a transport in which some hosts swallow what is sent to them, and the
// others have no authentication.
type network struct {
	dead map[string]bool

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
	if n.dead[req.URL.Host] {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: http.NoBody, Request: req}, nil
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
		"one dead":    {"others have turns of their own", 1, nil, "alive.example/fn", 0},
		"several":     {"there is a turn left for more than one", 3, nil, "alive.example/fn", 0},
		"dead mirror": {"a mirror takes half of the time at most", 1, map[string][]string{"alive.example": {"dead0.example/x"}}, "alive.example/fn", 15 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(tc.dead)
				c, err := registry.New(registry.Config{
					Transport: n, Credentials: fixed{}, Concurrent: 16, Mirrors: tc.mirrors, Telemetry: telemetry.Discard(),
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
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
		c, err := registry.New(registry.Config{Transport: n, Credentials: fixed{}, Concurrent: 16, Telemetry: telemetry.Discard()})
		if err != nil {
			t.Fatal(err)
		}
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
		if n.most != 16 {
			t.Errorf("%d requests at a time, want 16", n.most)
		}
	})
}
