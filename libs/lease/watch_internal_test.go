// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// short is a change in short: "+fn" for a pool, "-fn" for one that is removed.
func short(c *podmanagerv1.WatchPoolsResponse) string {
	switch {
	case c.GetPool() != nil:
		return "+" + c.GetPool().GetKey().GetReference()
	case c.GetRemoved() != nil:
		return "-" + c.GetRemoved().GetReference()
	default:
		return "synced"
	}
}

// TestWatch lists pools twice a second, such as "x y2": the digit is how many leases wait.
func TestWatch(t *testing.T) {
	tests := map[string]struct {
		reason string
		lists  []string
		want   string
	}{
		"nothing":  {"that is said too", []string{""}, "synced"},
		"as it is": {"what does not change is sent once", []string{"x y", "x y", "x y"}, "+x +y synced"},
		"changed": {
			"a pool is sent again when anything in it changes",
			[]string{"x y", "x y1", "x y1"},
			"+x +y synced +y",
		},
		"added":   {"after synced too", []string{"x", "x y"}, "+x synced +y"},
		"removed": {"by its key", []string{"x y", "y"}, "+x +y synced -x"},
		"unreachable": {
			"what was sent stays while no pod-manager answers", []string{"!", "x", "!", "x", "x y"}, "+x synced +y",
		},
		"gone and back": {"it is new then", []string{"x", "", "x"}, "+x synced -x +x"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(tc.lists))*500*time.Millisecond-time.Millisecond)
				defer cancel()
				n := 0
				list := func(context.Context) (pools []*podmanagerv1.Pool, err error) {
					if tc.lists[n] == "!" {
						err = fault.New(fault.Unavailable, "no pod-manager answers")
						n++
						return nil, err
					}
					for word := range strings.FieldsSeq(tc.lists[n]) {
						pools = append(pools, &podmanagerv1.Pool{
							Key:     &podmanagerv1.PoolKey{Reference: word[:1]},
							Waiting: int32(len(word) - 1),
						})
					}
					n++
					return pools, nil
				}
				var got []string
				send := func(c *podmanagerv1.WatchPoolsResponse) error { got = append(got, short(c)); return nil }
				err := watchPools(ctx, list, send)
				if !errors.Is(err, context.DeadlineExceeded) || n != len(tc.lists) {
					t.Errorf("ended with %v after %d lists, want %d and the end of the context", err, n, len(tc.lists))
				}
				if want := strings.Fields(tc.want); !slices.Equal(got, want) {
					t.Errorf("sent %v, want %v: %s", got, want, tc.reason)
				}
			})
		})
	}
}

func TestWatchEndsWithErrors(t *testing.T) {
	broken := errors.New("broken")
	list := func(context.Context) ([]*podmanagerv1.Pool, error) { return nil, broken }
	none := func(context.Context) ([]*podmanagerv1.Pool, error) { return nil, nil }
	fails := func(*podmanagerv1.WatchPoolsResponse) error { return broken }
	if err := watchPools(t.Context(), list, fails); !errors.Is(err, broken) {
		t.Errorf("a list that fails: %v", err)
	}
	if err := watchPools(t.Context(), none, fails); !errors.Is(err, broken) {
		t.Errorf("a watcher that is gone: %v", err)
	}
}
