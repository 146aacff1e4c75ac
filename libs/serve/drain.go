// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/grpchealth"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// LongestDrain is the maximum duration of a drain as a multiple of its delay.
const LongestDrain = 4

// drainServers serves requests until clients use other replicas: for delay, and longer while new connections arrive
// from load balancers that are late. Rejected connections would lose requests. It returns the duration.
func drainServers(ctx context.Context, delay time.Duration, servers []*server) time.Duration {
	begin := time.Now()
	for _, s := range servers {
		// Clients use other connections, which reach other replicas by now. http.Server's Shutdown asks them too, but drops
		// requests that are on their way.
		s.listener.draining.Store(true)
	}
	quiet := delay / 2
	for wait := delay; wait > 0 && retry.Sleep(ctx, wait); {
		wait = 0
		for _, s := range servers {
			wait = max(wait, quiet-time.Since(s.lastLate()))
		}
		wait = min(wait, LongestDrain*delay-time.Since(begin))
	}
	return time.Since(begin)
}

// lastLate returns the time of the last request on a connection that began while the server was draining. It is zero
// without such a request.
func (s *server) lastLate() time.Time {
	if last := s.listener.lastLate.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// isProbe reports whether path is a health check, which is for this process: its client needs no other replica.
func isProbe(path string) bool {
	return strings.HasPrefix(path, "/"+grpchealth.HealthV1ServiceName+"/")
}
