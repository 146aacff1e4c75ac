// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

const (
	// maxQueries and maxQueriesPerPeer limit concurrent queries of the gateway's state, in total and for each client
	// address. Each answer occupies about a megabyte in a large cluster. A watch of pools counts as a query until it ends.
	maxQueries        = 64
	maxQueriesPerPeer = 16
	// queryTimeout is the time within which a client must read the answer to a query. Watches of pools have no such
	// limit, because they last until the client leaves.
	queryTimeout = 30 * time.Second
)

// queries limits concurrent queries of the gateway's state, such as its status or its pools. Queries do not use the
// memory budget of evaluations, so that users can query the state while evaluations wait for memory. It is safe for
// concurrent use.
type queries struct {
	mu    sync.Mutex
	count int
	peers map[string]int // number of running queries of each client address
}

func newQueries() *queries { return &queries{peers: make(map[string]int)} }

// changeCount adds n, which is 1 or -1, to the number of a client's running queries. If the sum would exceed a limit,
// changeCount returns false and changes nothing.
func (q *queries) changeCount(peer string, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > 0 && (q.count >= maxQueries || q.peers[peer] >= maxQueriesPerPeer) {
		return false
	}
	q.count += n
	if q.peers[peer] += n; q.peers[peer] == 0 {
		delete(q.peers, peer)
	}
	return true
}

// limitQueries calls next for each request within the limits, and rejects other requests as "too many queries".
func (q *queries) limitQueries(next http.Handler) http.Handler {
	errors := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer := serve.Peer(r.RemoteAddr)
		if !q.changeCount(peer, 1) {
			err := fault.New(fault.Exhausted, "too many queries: the gateway answers %d at once, and %d of one "+
				"address: try again later, or stop some watches", maxQueries, maxQueriesPerPeer)
			_ = errors.Write(w, r, rpcfault.ToConnect(err)) // an error means that the client left
			return
		}
		defer q.changeCount(peer, -1)
		if r.URL.Path != podmanagerv1connect.PodManagerServiceWatchPoolsProcedure {
			// Set a deadline. Otherwise the answer for a client that does not read it would stay in memory forever.
			conn := http.NewResponseController(w)
			_ = conn.SetWriteDeadline(time.Now().Add(queryTimeout))
			defer func() { _ = conn.SetWriteDeadline(time.Time{}) }()
		}
		next.ServeHTTP(w, r)
	})
}
