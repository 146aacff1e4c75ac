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
// the memory budget, so that evaluations do not wait for them. It is safe for concurrent use.
type queries struct {
	mu    sync.Mutex
	count int
	peers map[string]int // queries by client address
}

func newQueries() *queries { return &queries{peers: make(map[string]int)} }

// changeCount adds n, 1 or -1, to the number of a client's queries. It returns false if a limit is reached.
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

// limitQueries serves requests with next up to the limits, and rejects further requests.
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
			// Without a deadline, the answer would stay in memory for as long as the client does not read it.
			conn := http.NewResponseController(w)
			_ = conn.SetWriteDeadline(time.Now().Add(queryTimeout))
			defer func() { _ = conn.SetWriteDeadline(time.Time{}) }()
		}
		next.ServeHTTP(w, r)
	})
}
