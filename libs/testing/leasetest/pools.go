// SPDX-License-Identifier: Apache-2.0

package leasetest

import (
	"context"
	"maps"
	"slices"
	"sync"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// poolBoard holds the current pools.
type poolBoard struct {
	mu      sync.Mutex
	pools   map[string]*podmanagerv1.Pool // by digest
	changed chan struct{}                 // closes at the next change
}

// SetPools replaces the pools. Each has a digest of its own.
func (b *poolBoard) SetPools(pools ...*podmanagerv1.Pool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools = map[string]*podmanagerv1.Pool{}
	for _, p := range pools {
		b.pools[p.GetKey().GetDigest()] = p
	}
	if b.changed != nil {
		close(b.changed)
	}
	b.changed = nil
}

// now returns the current pools, and a channel that closes when they change.
func (b *poolBoard) now() (pools map[string]*podmanagerv1.Pool, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.pools, b.changed
}

// ListPools implements lease.Manager.
func (b *poolBoard) ListPools(_ context.Context,
	req *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	pools, _ := b.now()
	resp := &podmanagerv1.ListPoolsResponse{}
	for _, digest := range slices.Sorted(maps.Keys(pools)) {
		if image := req.GetImage(); image == "" || image == pools[digest].GetKey().GetReference() {
			resp.Pools = append(resp.Pools, pools[digest])
		}
	}
	return resp, nil
}

// WatchPools implements lease.Manager. It sends all pools again with each change.
func (b *poolBoard) WatchPools(ctx context.Context, req *podmanagerv1.WatchPoolsRequest, send func(
	*podmanagerv1.WatchPoolsResponse) error,
) error {
	known := map[string]*podmanagerv1.Pool{}
	for round := 0; ; round++ {
		pools, changed := b.now()
		for _, change := range changes(known, pools, req.GetImage()) {
			if err := send(change); err != nil {
				return err
			}
		}
		if round == 0 {
			if err := send(synced()); err != nil {
				return err
			}
		}
		known = pools
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// changes returns the changes from one set of pools to another, for the pools of an image.
func changes(before, after map[string]*podmanagerv1.Pool, image string) []*podmanagerv1.WatchPoolsResponse {
	var out []*podmanagerv1.WatchPoolsResponse
	for digest, p := range before {
		if after[digest] == nil {
			removed := &podmanagerv1.WatchPoolsResponse_Removed{Removed: p.GetKey()}
			out = append(out, &podmanagerv1.WatchPoolsResponse{Change: removed})
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(after)) {
		if p := after[digest]; image == "" || image == p.GetKey().GetReference() {
			out = append(out, &podmanagerv1.WatchPoolsResponse{Change: &podmanagerv1.WatchPoolsResponse_Pool{Pool: p}})
		}
	}
	return out
}

func synced() *podmanagerv1.WatchPoolsResponse {
	synced := &podmanagerv1.WatchPoolsResponse_Synced_{Synced: &podmanagerv1.WatchPoolsResponse_Synced{}}
	return &podmanagerv1.WatchPoolsResponse{Change: synced}
}
