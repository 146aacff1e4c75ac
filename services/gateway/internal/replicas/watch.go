package replicas

import (
	"context"
	"sync"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/pause"
)

// watchPause is the pause before a replica that was lost is watched again.
const watchPause = time.Second

// report is what a replica says to a watcher; a nil change says that it was lost.
type report struct {
	address string
	change  *podmanagerv1.WatchPoolsResponse
}

// watch is one call of WatchPools.
type watch struct {
	req     *podmanagerv1.WatchPoolsRequest
	board   board
	reports chan report
	stop    map[string]context.CancelFunc // ends the watch of one replica
	running sync.WaitGroup
}

// WatchPools implements lease.Manager: it watches all replicas, also those that come
// later.
func (m *Manager) WatchPools(ctx context.Context, req *podmanagerv1.WatchPoolsRequest, send func(*podmanagerv1.WatchPoolsResponse) error) error {
	w := &watch{
		req: req, board: board{views: map[string]*view{}},
		reports: make(chan report), stop: map[string]context.CancelFunc{},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer w.running.Wait()
	defer cancel()
	var now *known
	for {
		var told []*podmanagerv1.WatchPoolsResponse
		if latest := m.known.Load(); latest != now {
			now, told = latest, w.follow(ctx, latest.replicas)
		} else {
			select {
			case r := <-w.reports:
				told = w.take(r)
			case <-now.replaced:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for _, change := range told {
			if err := send(change); err != nil {
				return err
			}
		}
	}
}

// take passes a report on to the board.
func (w *watch) take(r report) []*podmanagerv1.WatchPoolsResponse {
	if r.change == nil {
		return w.board.lost(r.address)
	}
	return w.board.change(r.address, r.change)
}

// follow watches the replicas that are new, and no more those that are gone.
func (w *watch) follow(ctx context.Context, replicas []*replica) []*podmanagerv1.WatchPoolsResponse {
	there := map[string]bool{}
	for _, r := range replicas {
		there[r.address] = true
		if w.stop[r.address] != nil {
			continue
		}
		one, stop := context.WithCancel(ctx)
		w.stop[r.address] = stop
		w.board.add(r.address)
		w.running.Go(func() { w.watchOne(one, r) })
	}
	var told []*podmanagerv1.WatchPoolsResponse
	for address, stop := range w.stop {
		if !there[address] {
			stop()
			delete(w.stop, address)
			told = append(told, w.board.gone(address)...)
		}
	}
	return told
}

// watchOne reports what one replica says, until ctx ends.
func (w *watch) watchOne(ctx context.Context, r *replica) {
	tell := func(change *podmanagerv1.WatchPoolsResponse) error {
		select {
		case w.reports <- report{r.address, change}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		_ = r.WatchPools(ctx, w.req, tell)
		if tell(nil) != nil || !pause.For(ctx, watchPause) {
			return
		}
	}
}
