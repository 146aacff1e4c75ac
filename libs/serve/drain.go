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

// drainServers waits until clients use other replicas, and returns the duration. It waits for delay, and longer while
// load balancers still send requests on new connections, because closing those would lose requests.
func drainServers(ctx context.Context, delay time.Duration, servers []*server) time.Duration {
	begin := time.Now()
	for _, s := range servers {
		// From now on, we ask clients to open new connections, which reach other replicas. http.Server's Shutdown
		// does that too, but drops requests that are in transit.
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

// lastLate returns the time of the last request on a connection that began while the server was draining. It returns
// zero if there was no such request.
func (s *server) lastLate() time.Time {
	if last := s.listener.lastLate.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// isProbe reports whether path is a health check. Health checks are about this process, so that their clients need
// not use another replica.
func isProbe(path string) bool {
	return strings.HasPrefix(path, "/"+grpchealth.HealthV1ServiceName+"/")
}
