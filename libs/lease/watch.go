// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// watchInterval is the time between two lists of a watch. What comes and goes between them
// is not seen.
const watchInterval = 500 * time.Millisecond

// poolKey identifies a pool.
type poolKey struct{ reference, digest string }

// Watch implements [Manager.WatchPools] by listing pools at intervals: it sends the
// pools that differ from what was sent before. It returns the first error of list or send, or that
// of ctx. Pools that list returned must not be changed.
func Watch(
	ctx context.Context,
	list func(context.Context) ([]*podmanagerv1.Pool, error),
	send func(*podmanagerv1.WatchPoolsResponse) error,
) error {
	sent := make(map[poolKey]*podmanagerv1.Pool)
	for first := true; ; first = false {
		pools, err := list(ctx)
		if err != nil {
			return err
		}
		changes := compare(sent, pools)
		if first {
			synced := &podmanagerv1.WatchPoolsResponse_Synced_{Synced: &podmanagerv1.WatchPoolsResponse_Synced{}}
			changes = append(changes, &podmanagerv1.WatchPoolsResponse{Change: synced})
		}
		for _, change := range changes {
			if err := send(change); err != nil {
				return err
			}
		}
		if !retry.Sleep(ctx, watchInterval) {
			return ctx.Err()
		}
	}
}

// compare returns the changes that lead from what was sent to pools, and counts them as
// sent.
func compare(sent map[poolKey]*podmanagerv1.Pool, pools []*podmanagerv1.Pool) []*podmanagerv1.WatchPoolsResponse {
	var changes []*podmanagerv1.WatchPoolsResponse
	now := make(map[poolKey]bool, len(pools))
	for _, p := range pools {
		key := poolKey{p.GetKey().GetReference(), p.GetKey().GetDigest()}
		now[key] = true
		if !proto.Equal(sent[key], p) {
			sent[key] = p
			changes = append(changes, &podmanagerv1.WatchPoolsResponse{Change: &podmanagerv1.WatchPoolsResponse_Pool{Pool: p}})
		}
	}
	for key, p := range sent {
		if !now[key] {
			delete(sent, key)
			removed := &podmanagerv1.WatchPoolsResponse_Removed{Removed: p.GetKey()}
			changes = append(changes, &podmanagerv1.WatchPoolsResponse{Change: removed})
		}
	}
	return changes
}
