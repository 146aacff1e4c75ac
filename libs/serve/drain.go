package serve

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/grpchealth"

	"github.com/krm-function-runner/function-runner/libs/pause"
)

// LongestDrain is how many times its delay a drain takes at most.
const LongestDrain = 4

// drain has servers take requests for as long as clients need to hear that they are to go
// elsewhere: that is delay, and more while somebody still comes anew, whom a load balancer
// sent that is late. To refuse those would lose their requests. It returns how long it took.
func drain(ctx context.Context, delay time.Duration, servers []*server) time.Duration {
	begin := time.Now()
	for _, s := range servers {
		s.drain()
	}
	quiet := delay / 2
	for wait := delay; wait > 0 && pause.For(ctx, wait); {
		wait = 0
		for _, s := range servers {
			wait = max(wait, quiet-time.Since(s.lastNewcomer()))
		}
		wait = min(wait, LongestDrain*delay-time.Since(begin))
	}
	return time.Since(begin)
}

// drain asks clients to use other connections, which lead to other replicas by now. The
// server's own shutdown asks them too, but drops requests that are on their way.
func (s *server) drain() {
	if s.aging != nil {
		s.aging.draining.Store(true)
	}
}

// lastNewcomer is when somebody last came anew since the server drains, zero if nobody did.
func (s *server) lastNewcomer() time.Time {
	if s.aging == nil {
		return time.Time{}
	}
	if last := s.aging.newcomer.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// isProbe says whether a request for a path is from somebody who knows that this very
// process is here, and wants nothing else from it.
func isProbe(path string) bool {
	return strings.HasPrefix(path, "/"+grpchealth.HealthV1ServiceName+"/")
}
