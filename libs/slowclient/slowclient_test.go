// SPDX-License-Identifier: Apache-2.0

package slowclient_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/slowclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPace(t *testing.T) {
	const second = time.Second
	type step struct {
		takes time.Duration
		bytes int
	}
	tests := map[string]struct {
		reason string
		steps  []step
		repeat int
		ok     bool
	}{
		"stopped":     {"nothing comes", []step{{slowclient.Grace + second, 0}}, 1, false},
		"a pause":     {"a client may pause", []step{{slowclient.Grace - second, 0}}, 1, true},
		"many pauses": {"pauses add up", []step{{second, 0}}, 31, false},
		"a trickle":   {"few bytes earn little time", []step{{second, 1000}}, 60, false},
		"at the rate": {"it may take for ever", []step{{second, slowclient.BytesPerSecond}}, 10000, true},
		"pauses after a burst": {
			"bytes earn a pause of Grace, and no longer one", []step{{0, 64 << 20}, {slowclient.Grace + second, 0}}, 1, false,
		},
		"burst and pause": {"each burst earns its pause", []step{{20 * second, 20 * slowclient.BytesPerSecond}}, 1000, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				interrupted := make(chan struct{})
				m := slowclient.New(func() { close(interrupted) })
				ok := true
				for i := 0; ok && i < tc.repeat*len(tc.steps); i++ {
					s := tc.steps[i%len(tc.steps)]
					ok = m.Do(func() int {
						select {
						case <-time.After(s.takes):
						case <-interrupted:
						}
						return s.bytes
					})
				}
				if ok != tc.ok {
					t.Errorf("kept the pace: %v, want %v: %s", ok, tc.ok, tc.reason)
				}
			})
		})
	}
}

// TestInterruptHasReturned has an interrupt that takes a while: it must not reach into
// what comes after Do.
func TestInterruptHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, returned := make(chan struct{}), false
		m := slowclient.New(func() {
			close(began)
			<-time.After(time.Second)
			returned = true
		})
		if m.Do(func() int { <-began; return 0 }) {
			t.Error("a transfer that was interrupted kept the pace")
		}
		if !returned {
			t.Error("interrupt still runs after Do")
		}
		if m.Do(func() int { <-time.After(time.Second); return 1 << 30 }) {
			t.Error("the client has waiting time after it was interrupted")
		}
	})
}

func TestWrite(t *testing.T) {
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		size, capacity int
		err            error
		calls          int
		reason         string
	}{
		"nothing": {0, 0, nil, 1, "a write of nothing sends the headers"},
		"small":   {10, 10, nil, 1, "one piece"},
		"large":   {600 << 10, 600 << 10, nil, 3, "pieces of 256 KiB"},
		"fails":   {600 << 10, 300 << 10, failed, 2, "the bytes of the failed write count"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			calls := 0
			n, inTime, err := slowclient.New(func() {}).Write(func(p []byte) (int, error) {
				calls++
				if out.Len()+len(p) > tc.capacity {
					n, _ := out.Write(p[:tc.capacity-out.Len()])
					return n, failed
				}
				return out.Write(p)
			}, bytes.Repeat([]byte("a"), tc.size))
			if n != tc.capacity || !inTime || !errors.Is(err, tc.err) || calls != tc.calls {
				t.Errorf("Write = %d, %v, %v in %d calls, want %d, true, %v in %d: %s",
					n, inTime, err, calls, tc.capacity, tc.err, tc.calls, tc.reason)
			}
		})
	}
}
