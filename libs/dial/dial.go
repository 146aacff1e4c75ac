// SPDX-License-Identifier: Apache-2.0

// Package dial opens connections to addresses that have only just come to be: function pods and their Services.
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
	// round is how many attempts a round has, and how many are under way at most: each is given up when so many have
	// begun. On slow networks, attempts of a later round succeed.
	round = 8
)

// Func makes one attempt, as [net.Dialer.DialContext] does.
type Func func(ctx context.Context, network, address string) (net.Conn, error)

// Staggered opens a connection over TCP. It makes attempts until one succeeds, ctx ends, or one fails in another way
// than that it was not answered: a refused connection is an error, and retries after it are the caller's. When ctx
// ends, the error is that of the last attempt that was given up, if there is one.
func Staggered(ctx context.Context, attempt Func, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the other attempts
	defer cancel()
	var last error
	results := make(chan result)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for gap, made := firstGap, 0; ; {
		select {
		case <-timer.C:
			go try(ctx, attempt, address, (round-1)*gap, results)
			timer.Reset(gap)
			if made++; made%round == 0 {
				gap *= 2
			}
		case r := <-results:
			switch {
			case unanswered(r.err):
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

// result is how an attempt ended.
type result struct {
	conn net.Conn
	err  error
}

// try makes one attempt. The connection of one that comes too late is closed.
func try(ctx context.Context, attempt Func, address string, timeout time.Duration, results chan<- result) {
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

// unanswered reports whether an attempt failed because nothing answered.
func unanswered(err error) bool {
	failed, ok := errors.AsType[net.Error](err)
	return ok && failed.Timeout()
}
