// SPDX-License-Identifier: Apache-2.0

package leasetest

import (
	"context"
	"maps"
	"slices"
	"sync"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

type poolBoard struct {
	mu    sync.Mutex
	pools map[string]*podmanagerv1.Pool // keyed by digest
}

// SetPools sets the pools that ListPools returns. The pools must have different digests.
func (b *poolBoard) SetPools(pools ...*podmanagerv1.Pool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools = map[string]*podmanagerv1.Pool{}
	for _, p := range pools {
		b.pools[p.GetKey().GetDigest()] = p
	}
}

// ListPools implements lease.Manager.
func (b *poolBoard) ListPools(_ context.Context,
	req *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	b.mu.Lock()
	pools := b.pools
	b.mu.Unlock()
	resp := &podmanagerv1.ListPoolsResponse{}
	for _, digest := range slices.Sorted(maps.Keys(pools)) {
		if image := req.GetImage(); image == "" || image == pools[digest].GetKey().GetReference() {
			resp.Pools = append(resp.Pools, pools[digest])
		}
	}
	return resp, nil
}
