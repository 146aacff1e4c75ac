// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

const (
	// maxQueries is the maximum number of concurrent queries, and maxQueriesPerPeer the maximum number from one address.
	// Watches count as queries. Each query holds an answer in memory, about a megabyte in a large cluster.
	maxQueries        = 64
	maxQueriesPerPeer = 16
	// queryTimeout limits the time of a query and its answer, except for watches.
	queryTimeout = 30 * time.Second
)

// queries limits the requests that show the state of the system. These requests do not use the memory budget, and no
// evaluation waits for them.
type queries struct{ limit *serve.PeerLimit }

func newQueries() queries { return queries{serve.NewPeerLimit(maxQueries, maxQueriesPerPeer)} }

// limitQueries limits the requests that next serves, and rejects further requests.
func (q queries) limitQueries(next http.Handler) http.Handler {
	errors := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer := serve.Peer(r.RemoteAddr)
		if !q.limit.Admit(peer) {
			err := fault.New(fault.Exhausted, "too many queries: the gateway answers %d at a time, and %d of one "+
				"address: try again, or end some watches", maxQueries, maxQueriesPerPeer)
			if errors.IsSupported(r) {
				_ = errors.Write(w, r, rpcfault.ToConnect(err)) // an error means that the client left
				return
			}
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		defer q.limit.Release(peer)
		if r.URL.Path != podmanagerv1connect.PodManagerServiceWatchPoolsProcedure {
			// The answer stays in memory while its client does not read it.
			conn := http.NewResponseController(w)
			_ = conn.SetWriteDeadline(time.Now().Add(queryTimeout))
			defer func() { _ = conn.SetWriteDeadline(time.Time{}) }()
		}
		next.ServeHTTP(w, r)
	})
}
