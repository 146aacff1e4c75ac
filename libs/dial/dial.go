// SPDX-License-Identifier: Apache-2.0

// Package dial opens connections to new addresses: function pods and their Services.
//
// Nodes drop packets to an address whose rules they do not have yet, and the kernel sends them again after a second.
// So further attempts begin while the first is not answered, and the first that succeeds is the connection.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// firstGap is the time between the first attempts. It doubles after each round of attempts.
	firstGap = 25 * time.Millisecond
	// round is the number of attempts in a round, and the maximum number of concurrent attempts: an attempt is cancelled
	// after that many further attempts have begun. On slow networks, attempts of a later round succeed.
	round = 8
)

// Func makes a single attempt, as [net.Dialer.DialContext] does.
type Func func(ctx context.Context, network, address string) (net.Conn, error)

// Staggered opens a connection over TCP. It makes attempts until an attempt succeeds, ctx is done, or an attempt fails
// for another reason than a missing answer: a refused connection is an error, and retries after it are the caller's
// job. When ctx is done, the error is the error of the last cancelled attempt, if any.
func Staggered(ctx context.Context, attempt Func, address string) (net.Conn, error) {
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
			switch {
			case wasUnanswered(r.err):
				last = r.err
			case r.err == nil || ctx.Err() == nil:
				return r.conn, r.err
			}
		case <-ctx.Done():
			if last == nil {
				last = fmt.Errorf("dial tcp %s: %w", address, ctx.Err())
			}
			return nil, last
		}
	}
}

// result is the result of an attempt.
type result struct {
	conn net.Conn
	err  error
}

// tryConnect makes a single attempt. It closes a connection that arrives too late.
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

// wasUnanswered reports whether an attempt failed because nothing answered.
func wasUnanswered(err error) bool {
	failed, ok := errors.AsType[net.Error](err)
	return ok && failed.Timeout()
}
