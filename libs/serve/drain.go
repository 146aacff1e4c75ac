// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/grpchealth"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// LongestDrain limits the duration of a drain: it lasts at most LongestDrain times the configured delay. In a
// drain, the server still answers requests, but clients must move to other replicas.
const LongestDrain = 4

// drainServers waits until clients use other replicas, and returns how long it waited. It waits at least for delay.
// While load balancers still open new connections, it waits longer, because the requests on these connections would
// be lost.
func drainServers(ctx context.Context, delay time.Duration, servers []*server) time.Duration {
	begin := time.Now()
	for _, s := range servers {
		// From now on, clients must open new connections, which lead to other replicas. Shutdown of http.Server would
		// also achieve this, but would drop requests that are in transit.
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

// lastLate returns the time of the last request on a connection that was opened during the drain. It returns the
// zero time if there was no such request.
func (s *server) lastLate() time.Time {
	if last := s.listener.lastLate.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// isProbe reports whether path belongs to a health check. Health checks do not prolong a drain, because they are
// for this replica and must not move to another.
func isProbe(path string) bool {
	return strings.HasPrefix(path, "/"+grpchealth.HealthV1ServiceName+"/")
}
