// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/grpchealth"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// LongestDrain is how many times its delay a drain takes at most.
const LongestDrain = 4

// drain has servers take requests until clients use other replicas: for delay, and longer
// while new connections still come from load balancers that are late. To reject those would
// lose their requests. It returns how long it took.
func drain(ctx context.Context, delay time.Duration, servers []*server) time.Duration {
	begin := time.Now()
	for _, s := range servers {
		// Clients use other connections, which lead to other replicas by now. http.Server's Shutdown asks them too, but
		// drops requests that are on their way.
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

// lastLate returns the time of the last request on a connection that began while the server was draining. It is zero if
// there was none.
func (s *server) lastLate() time.Time {
	if last := s.listener.lastLate.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// isProbe reports whether a request for a path is a health check: it is meant for this very
// process, and its client does not need another replica.
func isProbe(path string) bool {
	return strings.HasPrefix(path, "/"+grpchealth.HealthV1ServiceName+"/")
}
