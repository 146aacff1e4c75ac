// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"slices"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// ListPools returns the pools that match a request, sorted by reference and digest. It implements lease.Manager.
func (m *Manager) ListPools(
	ctx context.Context, req *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	if err := m.awaitSync(ctx, ignoreReports); err != nil {
		return nil, err
	}
	pools, err := askLoop(ctx, m.Inbox, func(l *loop) []*podmanagerv1.Pool { return l.listPools(req.GetImage()) })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pools, func(a, b *podmanagerv1.Pool) int {
		x, y := a.GetKey(), b.GetKey()
		return cmp.Or(cmp.Compare(x.GetReference(), y.GetReference()), cmp.Compare(x.GetDigest(), y.GetDigest()))
	})
	list := &podmanagerv1.ListPoolsResponse{Pools: pools}
	if m.config.Problems != nil {
		list.Problems = m.config.Problems()
	}
	return list, nil
}

// listPools returns the pools that match a requested image. A function gets its pool after the lookup of its image.
// During the lookup, the result contains a pool without a digest, so that users see the reason for the wait.
func (l *loop) listPools(image string) []*podmanagerv1.Pool {
	var pools []*podmanagerv1.Pool
	for reference, waiting := range l.lookups {
		if selectsImage(image, reference) {
			pools = append(pools, &podmanagerv1.Pool{
				Key: &podmanagerv1.PoolKey{Reference: reference}, Replica: l.config.Replica, Waiting: waiting,
			})
		}
	}
	for _, f := range l.machine.Functions() {
		if !selectsImage(image, f.Reference) {
			continue
		}
		status, ok := l.machine.Status(f)
		if !ok {
			continue
		}
		if l.config.OwnerOf(f.Reference) == "" {
			status.Replica = l.config.Replica // this replica does not know the names of other owners
		}
		for _, pod := range status.GetPods() {
			pod.Namespace = l.config.Namespace
		}
		pools = append(pools, status)
	}
	return pools
}

// selectsImage reports whether an image reference matches a requested image. An empty image matches all references.
// An image without tag matches all references in its repository.
func selectsImage(image, reference string) bool {
	if image == "" || reference == image {
		return true
	}
	name, err := imagename.Parse(reference, "")
	return err == nil && name.Repository == image
}

// lookUp counts the leases that wait for a slow lookup of an image. more adds a lease (1) or removes a lease (-1).
func (l *loop) lookUp(image string, more int32) {
	if l.lookups[image] += more; l.lookups[image] == 0 {
		delete(l.lookups, image)
	}
}
