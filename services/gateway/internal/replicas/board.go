package replicas

import (
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// board is the pools of all replicas as one watcher knows them. It turns what
// replicas say into what the watcher is told: each function's pool, as all replicas
// together see it.
type board struct {
	views  map[string]*view // by the replica's address
	synced bool
}

// view is the pools of one replica.
type view struct {
	pools map[poolKey]*podmanagerv1.Pool
	// stale are the pools that a replica has not told again since it was lost; nil
	// once it is synced.
	stale map[poolKey]bool
	// answered says whether the replica was synced, or lost.
	answered bool
}

type poolKey struct{ reference, digest string }

func keyOf(k *podmanagerv1.PoolKey) poolKey { return poolKey{k.GetReference(), k.GetDigest()} }

// add takes a replica that is watched from now on.
func (b *board) add(address string) {
	b.views[address] = &view{pools: map[poolKey]*podmanagerv1.Pool{}, stale: map[poolKey]bool{}}
}

// change takes what a replica says.
func (b *board) change(address string, c *podmanagerv1.WatchPoolsResponse) []*podmanagerv1.WatchPoolsResponse {
	v := b.views[address]
	switch {
	case v == nil: // it is not watched any more
		return nil
	case c.GetPool() != nil:
		k := keyOf(c.GetPool().GetKey())
		v.pools[k] = c.GetPool()
		delete(v.stale, k)
		return b.tell(c.GetPool().GetKey())
	case c.GetRemoved() != nil:
		return b.forget(v, c.GetRemoved())
	case c.GetSynced() != nil:
		var told []*podmanagerv1.WatchPoolsResponse
		for k := range v.stale {
			told = append(told, b.forget(v, v.pools[k].GetKey())...)
		}
		v.stale, v.answered = nil, true
		return append(told, b.sync()...)
	}
	return nil
}

// lost takes that a replica cannot be reached. Its pools stay until it is there
// again and says otherwise, or is gone.
func (b *board) lost(address string) []*podmanagerv1.WatchPoolsResponse {
	v := b.views[address]
	if v == nil {
		return nil
	}
	v.answered = true
	v.stale = make(map[poolKey]bool, len(v.pools))
	for k := range v.pools {
		v.stale[k] = true
	}
	return b.sync()
}

// gone takes that a replica is no more, and its pools with it.
func (b *board) gone(address string) []*podmanagerv1.WatchPoolsResponse {
	v := b.views[address]
	delete(b.views, address)
	var told []*podmanagerv1.WatchPoolsResponse
	for _, p := range v.pools {
		told = append(told, b.forget(v, p.GetKey())...)
	}
	return append(told, b.sync()...)
}

// forget removes a pool from a view. Other replicas may have it, too.
func (b *board) forget(v *view, key *podmanagerv1.PoolKey) []*podmanagerv1.WatchPoolsResponse {
	delete(v.pools, keyOf(key))
	return b.tell(key)
}

// tell tells what a pool is now.
func (b *board) tell(key *podmanagerv1.PoolKey) []*podmanagerv1.WatchPoolsResponse {
	views := map[string]*podmanagerv1.Pool{}
	for address, v := range b.views {
		if p := v.pools[keyOf(key)]; p != nil {
			views[address] = p
		}
	}
	if len(views) == 0 {
		return []*podmanagerv1.WatchPoolsResponse{{Change: &podmanagerv1.WatchPoolsResponse_Removed{Removed: key}}}
	}
	return []*podmanagerv1.WatchPoolsResponse{{Change: &podmanagerv1.WatchPoolsResponse_Pool{Pool: merged(views)}}}
}

// sync tells, once, that all replicas have been heard or given up.
func (b *board) sync() []*podmanagerv1.WatchPoolsResponse {
	for _, v := range b.views {
		if !v.answered {
			return nil
		}
	}
	if b.synced {
		return nil
	}
	b.synced = true
	synced := &podmanagerv1.WatchPoolsResponse_Synced_{Synced: &podmanagerv1.WatchPoolsResponse_Synced{}}
	return []*podmanagerv1.WatchPoolsResponse{{Change: synced}}
}
