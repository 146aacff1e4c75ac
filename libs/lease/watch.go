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

// watchInterval is the interval at which a watch compares the pools of pods with the pools that it sent before. The
// client does not see a change that is undone within the interval.
const watchInterval = 500 * time.Millisecond

type poolKey struct{ reference, digest string }

// watchPools calls the function list every watchInterval, and the function send for each pool of pods that was
// added, changed or removed since the last time. After the first list, it also sends Synced. If list fails with
// fault.Unavailable, watchPools tries again, so that a watch survives a short outage. All other errors, and the end
// of ctx, end the watch. The listed pools must not be changed.
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

// comparePools returns messages about the pools that differ between sent and pools, and updates sent.
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
