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
	// maxQueries is the maximum number of concurrent queries, and maxQueriesPerPeer the maximum number from one
	// address. A watch of pools counts as a query while it lasts. Each query holds an answer in memory, about a
	// megabyte in a large cluster.
	maxQueries        = 64
	maxQueriesPerPeer = 16
	// queryTimeout is the time within which the answer to a query must be written. Watches of pools have no such
	// limit.
	queryTimeout = 30 * time.Second
)

// queries limits the requests for the state of the system: status, evaluations and pools. These requests do not use
// the memory budget, so that evaluations do not wait for them.
type queries struct{ limit *serve.PeerLimit }

func newQueries() queries { return queries{serve.NewPeerLimit(maxQueries, maxQueriesPerPeer)} }

// limitQueries serves requests with next up to the limits, and rejects further requests.
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
			// Without a deadline, the answer would stay in memory for as long as the client does not read it.
			conn := http.NewResponseController(w)
			_ = conn.SetWriteDeadline(time.Now().Add(queryTimeout))
			defer func() { _ = conn.SetWriteDeadline(time.Time{}) }()
		}
		next.ServeHTTP(w, r)
	})
}
