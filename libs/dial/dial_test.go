// SPDX-License-Identifier: Apache-2.0

package dial_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/dial"
)

// network drops packets until its rules are there. Answers take a while.
type network struct {
	rules time.Time
	takes time.Duration
	fails error

	mu                   sync.Mutex
	underWay, most, made int
	connected, closed    int
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n.count(func() { n.made++; n.underWay++; n.most = max(n.most, n.underWay) })
	defer n.count(func() { n.underWay-- })
	var answered <-chan time.Time
	if !time.Now().Before(n.rules) {
		answered = time.After(n.takes)
	}
	select {
	case <-answered:
		if n.fails != nil {
			return nil, n.fails
		}
		n.count(func() { n.connected++ })
		return &conn{network: n}, nil
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	}
}

func ignore(error) {}

func (n *network) count(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
}

// conn is a connection.
type conn struct {
	net.Conn
	network *network
}

func (c *conn) Close() error {
	c.network.count(func() { c.network.closed++ })
	return nil
}

// TestDroppedPacketsCostLittle has rules that come while attempts are under way, and networks where answers take time.
func TestDroppedPacketsCostLittle(t *testing.T) {
	for _, tc := range []struct{ rules, takes, lost time.Duration }{
		{0, 0, 0},
		{90 * time.Millisecond, time.Millisecond, 25 * time.Millisecond},
		{190 * time.Millisecond, time.Millisecond, 25 * time.Millisecond},
		{500 * time.Millisecond, time.Millisecond, 50 * time.Millisecond},
		{time.Second, 50 * time.Millisecond, 100 * time.Millisecond},
		{0, 300 * time.Millisecond, 200 * time.Millisecond},
		{0, 900 * time.Millisecond, 1400 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			n := &network{rules: begin.Add(tc.rules), takes: tc.takes}
			if _, err := dial.Staggered(t.Context(), n.dial, "pod:9446", ignore); err != nil {
				t.Fatal(err)
			}
			if took, want := time.Since(begin), tc.rules+tc.takes+tc.lost; took > want {
				t.Errorf("rules after %s, answers in %s: it takes %s, want %s at most", tc.rules, tc.takes, took, want)
			}
			synctest.Wait()
			n.check(t)
		})
	}
}

// check fails the test if too many attempts were under way, or a connection is left behind.
func (n *network) check(t *testing.T) {
	t.Helper()
	if n.most > 8 || n.underWay > 0 || n.connected-n.closed != 1 {
		t.Errorf("%d attempts at a time, %d of them under way yet; %d connections, %d of them closed", n.most, n.underWay,
			n.connected, n.closed)
	}
}

func TestRefusalsAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{fails: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
		_, err := dial.Staggered(t.Context(), n.dial, "pod:9446", ignore)
		if !errors.Is(err, syscall.ECONNREFUSED) || n.made != 1 {
			t.Errorf("%d attempts, %v", n.made, err)
		}
	})
}

// TestLateFailuresAreNotReported has a first attempt that times out, but returns after the last attempt has succeeded.
func TestLateFailuresAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int32
		n := &network{}
		attempt := func(ctx context.Context, network, address string) (net.Conn, error) {
			if made.Add(1) == 8 {
				return n.dial(ctx, network, address)
			}
			<-ctx.Done()
			<-time.After(time.Second)
			return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
		}
		failed := func(err error) { t.Errorf("%v after success", err) }
		if _, err := dial.Staggered(t.Context(), attempt, "pod:9446", failed); err != nil {
			t.Error(err)
		}
		<-time.After(2 * time.Second)
	})
}

// TestSilenceEndsWithTheContext has an address that never answers.
func TestSilenceEndsWithTheContext(t *testing.T) {
	for _, patience := range []time.Duration{10 * time.Millisecond, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			n := &network{rules: time.Now().Add(time.Hour)}
			_, err := dial.Staggered(ctx, n.dial, "pod:9446", ignore)
			synctest.Wait()
			if !errors.Is(err, context.DeadlineExceeded) || n.most > 8 || n.made > 80 || n.underWay > 0 {
				t.Errorf("%v after %d attempts, %d at a time", err, n.made, n.most)
			}
		})
	}
}
