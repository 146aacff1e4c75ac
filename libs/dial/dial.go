// SPDX-License-Identifier: Apache-2.0

// Package dial opens connections to new function pods and their Services, which nodes may not be able to reach yet.
//
// A node drops packets to an address until it has configured network rules for the address, and the kernel resends a
// lost packet only after a second. Therefore we start further attempts while the first attempt is unanswered, and use
// the first connection that succeeds.
package dial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// firstGap is the delay between the starts of two connection attempts in the first round. It doubles after each
	// round.
	firstGap = 25 * time.Millisecond
	// round is the number of connection attempts in a round. An attempt times out after seven times the delay between
	// attempts, so at most round attempts run concurrently. The delay and thus the timeout double in each round, so that
	// later attempts succeed on slow networks too.
	round = 8
)

// Func makes a single attempt to connect, as [net.Dialer.DialContext] does.
type Func func(ctx context.Context, network, address string) (net.Conn, error)

// Staggered opens a TCP connection to address. While no attempt has been answered, it starts further attempts. If an
// attempt fails with an error other than a timeout, it returns this error immediately, so that callers can retry
// refused connections. When ctx is done, it returns the error of the attempt that timed out last, or else the error of
// ctx. Before it returns, it passes the error of each failed attempt to the callback failed.
func Staggered(ctx context.Context, attempt Func, address string, failed func(error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx) // cancels the remaining attempts
	defer cancel()
	var last error
	results := make(chan result)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for gap, made := firstGap, 0; ; {
		select {
		case <-timer.C:
			go tryConnect(ctx, attempt, address, (round-1)*gap, results)
			timer.Reset(gap)
			if made++; made%round == 0 {
				gap *= 2
			}
		case r := <-results:
			if r.err != nil {
				failed(r.err)
			}
			switch {
			case wasUnanswered(r.err):
				last = r.err
			case r.err == nil || ctx.Err() == nil:
				return r.conn, r.err
			}
		case <-ctx.Done():
			return nil, cmp.Or(last, fmt.Errorf("dial tcp %s: %w", address, ctx.Err()))
		}
	}
}

type result struct {
	conn net.Conn
	err  error
}

// tryConnect makes a single attempt to connect and sends the result to results. If ctx is done first, it closes the
// connection.
func tryConnect(ctx context.Context, attempt Func, address string, timeout time.Duration, results chan<- result) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := attempt(limited, "tcp", address)
	select {
	case results <- result{conn, err}:
	case <-ctx.Done():
		if err == nil {
			_ = conn.Close()
		}
	}
}

// wasUnanswered reports whether an attempt to connect timed out. In this case, a further attempt may succeed.
func wasUnanswered(err error) bool {
	failed, ok := errors.AsType[net.Error](err)
	return ok && failed.Timeout()
}
