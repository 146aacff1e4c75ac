package manager

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/pause"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// ListPools returns the pools as they are now.
func (m *Manager) ListPools(ctx context.Context, req *podmanagerv1.ListPoolsRequest) (*podmanagerv1.ListPoolsResponse, error) {
	if err := m.synced(ctx, unheard); err != nil {
		return nil, err
	}
	pools, err := ask(ctx, m, func(l *loop) []*podmanagerv1.Pool { return l.list(selects(req.GetImage()), l.functions()) })
	if err != nil {
		return nil, err
	}
	return &podmanagerv1.ListPoolsResponse{Pools: pools}, nil
}

// watchInterval is the shortest time between two messages about one pool: on a busy
// one something changes with each evaluation.
const watchInterval = 100 * time.Millisecond

// WatchPools sends each pool, and again when something in it changes, until ctx ends.
func (m *Manager) WatchPools(ctx context.Context, req *podmanagerv1.WatchPoolsRequest, send func(*podmanagerv1.WatchPoolsResponse) error) error {
	if err := m.synced(ctx, unheard); err != nil {
		return err
	}
	w := &watcher{selects: selects(req.GetImage()), dirty: make(map[pool.Function]struct{}), wake: make(chan struct{}, 1)}
	if err := m.send(ctx, func(l *loop) { l.watch(w) }); err != nil {
		return err
	}
	defer m.tell(func(l *loop) { delete(l.watchers, w) })
	sender := sender{send: send, sent: make(map[pool.Function]*podmanagerv1.Pool)}
	for first := true; ; first = false {
		select {
		case <-w.wake:
		case <-m.config.Stopping:
			return nil
		case <-m.ended:
			return errEnded()
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := m.fetch(ctx, w, &sender); err != nil {
			return err
		}
		if first {
			synced := &podmanagerv1.WatchPoolsResponse_Synced_{Synced: &podmanagerv1.WatchPoolsResponse_Synced{}}
			if err := send(&podmanagerv1.WatchPoolsResponse{Change: synced}); err != nil {
				return err
			}
		}
		pause.For(ctx, watchInterval)
	}
}

// fetch sends what has changed since it was last called.
func (m *Manager) fetch(ctx context.Context, w *watcher, s *sender) error {
	type news struct {
		functions []pool.Function
		pools     []*podmanagerv1.Pool
	}
	fetched := make(chan news, 1)
	err := m.send(ctx, func(l *loop) {
		functions := w.take()
		fetched <- news{functions, l.list(w.selects, functions)}
	})
	if err != nil {
		return err
	}
	select {
	case n := <-fetched:
		return s.changes(n.functions, n.pools)
	case <-m.ended:
		return errEnded()
	}
}

// watcher is somebody who watches pools. Its fields belong to the loop, but for wake.
type watcher struct {
	selects func(reference string) bool
	dirty   map[pool.Function]struct{}
	wake    chan struct{}
}

// changed has the watcher told about a pool.
func (w *watcher) changed(f pool.Function) {
	if !w.selects(f.Reference) {
		return
	}
	w.dirty[f] = struct{}{}
	w.rouse()
}

func (w *watcher) rouse() {
	select {
	case w.wake <- struct{}{}:
	default: // it is awake
	}
}

// take returns what has changed, and forgets it.
func (w *watcher) take() []pool.Function {
	functions := make([]pool.Function, 0, len(w.dirty))
	for f := range w.dirty {
		functions = append(functions, f)
	}
	clear(w.dirty)
	return functions
}

// watch adds a watcher, for which everything is new.
func (l *loop) watch(w *watcher) {
	l.watchers[w] = struct{}{}
	for _, f := range l.functions() {
		w.changed(f)
	}
	w.rouse() // also if there is nothing: it is told that that is all
}

// list returns those of the pools that are selected, in order.
func (l *loop) list(selects func(string) bool, functions []pool.Function) []*podmanagerv1.Pool {
	var pools []*podmanagerv1.Pool
	for _, f := range functions {
		s := l.snapshot(f)
		if s == nil || !selects(f.Reference) {
			continue
		}
		s.Replica = l.config.Replica
		for _, p := range s.GetPods() {
			p.Namespace = l.config.Namespace
		}
		pools = append(pools, s)
	}
	slices.SortFunc(pools, func(a, b *podmanagerv1.Pool) int {
		return cmp.Or(cmp.Compare(a.GetKey().GetReference(), b.GetKey().GetReference()), cmp.Compare(a.GetKey().GetDigest(), b.GetKey().GetDigest()))
	})
	return pools
}

// selects returns what a request's image selects: all, an image, or a repository.
func selects(image string) func(reference string) bool {
	return func(reference string) bool {
		if image == "" || reference == image {
			return true
		}
		name, err := imagename.Parse(reference, "")
		return err == nil && name.Repository == image
	}
}

// sender sends what a watcher has not seen yet.
type sender struct {
	send func(*podmanagerv1.WatchPoolsResponse) error
	sent map[pool.Function]*podmanagerv1.Pool
}

// changes sends the pools that differ from what was sent, and those that are no more.
func (s *sender) changes(functions []pool.Function, pools []*podmanagerv1.Pool) error {
	for _, p := range pools {
		f := pool.Function{Reference: p.GetKey().GetReference(), Digest: p.GetKey().GetDigest()}
		functions = slices.DeleteFunc(functions, func(other pool.Function) bool { return other == f })
		if proto.Equal(s.sent[f], p) {
			continue
		}
		s.sent[f] = p
		if err := s.send(&podmanagerv1.WatchPoolsResponse{Change: &podmanagerv1.WatchPoolsResponse_Pool{Pool: p}}); err != nil {
			return err
		}
	}
	for _, f := range functions { // that have no pool any more
		if s.sent[f] == nil {
			continue
		}
		delete(s.sent, f)
		key := &podmanagerv1.PoolKey{Reference: f.Reference, Digest: f.Digest}
		if err := s.send(&podmanagerv1.WatchPoolsResponse{Change: &podmanagerv1.WatchPoolsResponse_Removed{Removed: key}}); err != nil {
			return err
		}
	}
	return nil
}
