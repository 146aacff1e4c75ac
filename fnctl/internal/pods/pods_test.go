// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pods"
	"github.com/krm-function-runner/function-runner/libs/evalphase"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// TestPoolsWithoutPods shows what requests wait for while a pool has no pods.
func TestPoolsWithoutPods(t *testing.T) {
	unresolved, resolved := &podmanagerv1.PoolKey{Reference: "fn:v1"}, &podmanagerv1.PoolKey{
		Reference: "fn:v1",
		Digest:    "sha256:1",
	}
	for want, pool := range map[string]*podmanagerv1.Pool{
		"Resolving": {Key: unresolved, Waiting: 1},
		"Queued":    {Key: resolved, Waiting: 1},
		"":          {Key: resolved},
	} {
		if rows := pods.Rows(pool, time.Unix(0, 0)); len(rows) != 1 || rows[0].State != want || rows[0].Pool != "fn:v1" {
			t.Errorf("%v is %+v, want the state %q", pool, rows, want)
		}
	}
}

func TestShort(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": -time.Second, "59s": 59900 * time.Millisecond, "1m0s": time.Minute, "9m59s": 599 * time.Second,
		"10m":  10*time.Minute + time.Second,
		"2h5m": 125 * time.Minute, "3d1h": 73*time.Hour + time.Minute,
	} {
		if got := evalphase.Short(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestChanges(t *testing.T) {
	key := &podmanagerv1.PoolKey{Reference: "fn:v1"}
	now := time.Unix(1_000_000, 0)
	owner := 0 // changes each time, which is no reason to show a pod again
	pool := func(pods ...*podmanagerv1.Pod) *podmanagerv1.WatchPoolsResponse {
		owner++
		pool := &podmanagerv1.Pool{Key: key, Pods: pods, Replica: fmt.Sprint("pod-manager-", owner)}
		return &podmanagerv1.WatchPoolsResponse{Change: &podmanagerv1.WatchPoolsResponse_Pool{Pool: pool}}
	}
	a := &podmanagerv1.Pod{Name: "a", State: podmanagerv1.Pod_STATE_READY}
	busy := &podmanagerv1.Pod{Name: "a", State: podmanagerv1.Pod_STATE_READY, Active: 1}
	b := &podmanagerv1.Pod{Name: "b", State: podmanagerv1.Pod_STATE_STARTING}
	steps := []struct {
		reason string
		change *podmanagerv1.WatchPoolsResponse
		want   string
	}{
		{"a new pool", pool(a), "[a Ready 0/0]"},
		{"nothing new", pool(a), "[]"},
		{"one pod of two", pool(a, b), "[b Starting 0/0]"},
		{"busy", pool(busy, b), "[a Ready 1/0]"},
		{"a pod is gone", pool(b), "[a Gone ]"},
		{
			"the pool is gone", &podmanagerv1.WatchPoolsResponse{Change: &podmanagerv1.WatchPoolsResponse_Removed{Removed: key}},
			"[b Gone ]",
		},
		{"and back", pool(a), "[a Ready 0/0]"},
	}
	var changes pods.Changes
	for _, step := range steps {
		got := []string{}
		for _, row := range changes.Of(step.change, now) {
			got = append(got, row.Pod+" "+row.State+" "+row.Load)
		}
		if fmt.Sprint(got) != step.want {
			t.Errorf("%s: %v, want %s", step.reason, got, step.want)
		}
		now = now.Add(time.Minute)
	}
}
