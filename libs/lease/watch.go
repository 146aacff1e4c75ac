// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// watchInterval is the interval at which a watch lists the pools. The watch misses changes that are undone within the
// interval.
const watchInterval = 500 * time.Millisecond

type poolKey struct{ reference, digest string }

// watchPools calls list at intervals, and sends the differences from the previously sent pools. After the first list,
// it also sends Synced. It ignores errors of list of class fault.Unavailable, so that a watch outlasts a time without
// an answer. It returns other errors of list, errors of send and the error of ctx. Callers must not change the pools
// that list returned.
func watchPools(
	ctx context.Context,
	list func(context.Context) ([]*podmanagerv1.Pool, error),
	send func(*podmanagerv1.WatchPoolsResponse) error,
) error {
	sent := make(map[poolKey]*podmanagerv1.Pool)
	for synced := false; ; {
		pools, err := list(ctx)
		if err != nil && fault.Of(err) != fault.Unavailable {
			return err
		}
		var changes []*podmanagerv1.WatchPoolsResponse
		if err == nil {
			changes = comparePools(sent, pools)
		}
		if err == nil && !synced {
			synced = true
			change := &podmanagerv1.WatchPoolsResponse_Synced_{Synced: &podmanagerv1.WatchPoolsResponse_Synced{}}
			changes = append(changes, &podmanagerv1.WatchPoolsResponse{Change: change})
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

// comparePools returns the changes that turn the sent pools into pools, and updates sent.
func comparePools(sent map[poolKey]*podmanagerv1.Pool, pools []*podmanagerv1.Pool) []*podmanagerv1.WatchPoolsResponse {
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
