package replicas

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// listTimeout bounds how long one replica may take to list its pools.
const listTimeout = 5 * time.Second

// ListPools implements lease.Manager: it lists the pools of all replicas that answer,
// each function's once. It is an error if none does.
func (m *Manager) ListPools(ctx context.Context, req *podmanagerv1.ListPoolsRequest) (*podmanagerv1.ListPoolsResponse, error) {
	now := m.known.Load()
	if now.err != nil {
		return nil, now.err
	}
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	lists := make([]*podmanagerv1.ListPoolsResponse, len(now.replicas))
	errs := make([]error, len(now.replicas))
	var asked sync.WaitGroup
	for i, r := range now.replicas {
		asked.Go(func() { lists[i], errs[i] = r.ListPools(limited, req) })
	}
	asked.Wait()
	if !slices.Contains(errs, nil) {
		return nil, errors.Join(errs...)
	}
	views := map[poolKey]map[string]*podmanagerv1.Pool{}
	for i, list := range lists {
		if errs[i] != nil {
			m.failed(ctx, now.replicas[i], errs[i])
		}
		for _, p := range list.GetPools() {
			k := keyOf(p.GetKey())
			if views[k] == nil {
				views[k] = map[string]*podmanagerv1.Pool{}
			}
			views[k][now.replicas[i].address] = p
		}
	}
	all := &podmanagerv1.ListPoolsResponse{}
	for _, of := range views {
		all.Pools = append(all.Pools, merged(of))
	}
	slices.SortFunc(all.Pools, comparePools)
	return all, nil
}

func comparePools(a, b *podmanagerv1.Pool) int {
	return cmp.Or(
		cmp.Compare(a.GetKey().GetReference(), b.GetKey().GetReference()),
		cmp.Compare(a.GetKey().GetDigest(), b.GetKey().GetDigest()),
	)
}
