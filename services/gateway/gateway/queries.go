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
	// maxQueries is how many queries are answered at a time, and maxQueriesPerPeer how many of one address.
	// Watches are queries too. Each has an answer in memory, of a megabyte or so in a large cluster.
	maxQueries        = 64
	maxQueriesPerPeer = 16
	// queryTimeout is how long a query may take with its answer, unless it is a watch.
	queryTimeout = 30 * time.Second
)

// queries bounds the requests that show what the system does. They are outside of the memory budget, and no
// evaluation waits for them.
type queries struct{ limit *serve.PeerLimit }

func newQueries() queries { return queries{serve.NewPeerLimit(maxQueries, maxQueriesPerPeer)} }

// bounded returns next, which serves queries, within the bounds. Further queries are rejected.
func (q queries) bounded(next http.Handler) http.Handler {
	errors := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer := serve.Peer(r.RemoteAddr)
		if !q.limit.Admit(peer) {
			err := fault.New(fault.Exhausted, "too many queries: the gateway answers %d at a time, and %d of one "+
				"address: try again, or end some watches", maxQueries, maxQueriesPerPeer)
			if errors.IsSupported(r) {
				_ = errors.Write(w, r, rpcfault.ToConnect(err)) // otherwise the client has left
				return
			}
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		defer q.limit.Release(peer)
		if r.URL.Path != podmanagerv1connect.PodManagerServiceWatchPoolsProcedure {
			// A client that does not read would keep its answer in memory.
			conn := http.NewResponseController(w)
			_ = conn.SetWriteDeadline(time.Now().Add(queryTimeout))
			defer func() { _ = conn.SetWriteDeadline(time.Time{}) }()
		}
		next.ServeHTTP(w, r)
	})
}
