package replicas

import (
	"slices"
	"strings"
	"testing"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// tell returns a change in short: "+fn" for a pool, "-fn" for one removed.
func tell(c *podmanagerv1.WatchPoolsResponse) string {
	switch {
	case c.GetPool() != nil:
		return "+" + c.GetPool().GetKey().GetReference() + "@" + c.GetPool().GetReplica()
	case c.GetRemoved() != nil:
		return "-" + c.GetRemoved().GetReference()
	default:
		return "synced"
	}
}

// TestBoard plays what replicas a and b do, a step at a time, such as "a +fn".
func TestBoard(t *testing.T) {
	tests := map[string]struct {
		reason string
		steps  []string
		want   []string
	}{
		"one replica": {
			"it is passed on",
			[]string{"a come", "a +x", "a synced", "a +y", "a -x"},
			[]string{"+x@a", "synced", "+y@a", "-x"},
		},
		"two replicas": {
			"synced comes once, after both",
			[]string{"a come", "b come", "a +x", "a synced", "b +y", "b synced", "a synced"},
			[]string{"+x@a", "+y@b", "synced"},
		},
		"one of two is lost": {
			"the watcher does not wait for it, and it may be back soon",
			[]string{"a come", "b come", "a +x", "b +y", "a synced", "b lost"},
			[]string{"+x@a", "+y@b", "synced"},
		},
		"lost and back": {
			"what it does not tell again is gone",
			[]string{"a come", "a +x", "a +y", "a synced", "a lost", "a +y", "a synced"},
			[]string{"+x@a", "+y@a", "synced", "+y@a", "-x"},
		},
		"gone": {
			"its pools go with it",
			[]string{"a come", "b come", "a +x", "b +y", "a synced", "b synced", "a gone"},
			[]string{"+x@a", "+y@b", "synced", "-x"},
		},
		"moved": {
			"both see its pods, of which the owner tells; then the new owner's is left",
			[]string{"a come", "b come", "a +x", "a synced", "b synced", "b +x", "a gone"},
			[]string{"+x@a", "synced", "+x@a", "+x@b"},
		},
		"removed by one": {
			"the other one still sees its pods",
			[]string{"a come", "b come", "a +x", "b +x", "a synced", "b synced", "a -x", "b -x"},
			[]string{"+x@a", "+x@a", "synced", "+x@b", "-x"},
		},
		"gone before it answered": {
			"nobody waits for it any more",
			[]string{"a come", "b come", "a synced", "b gone"},
			[]string{"synced"},
		},
		"late": {
			"one that is gone has nothing to say",
			[]string{"a come", "a synced", "b +x", "b lost"},
			[]string{"synced"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := board{views: map[string]*view{}}
			var got []string
			for _, step := range tc.steps {
				for _, change := range play(&b, step) {
					got = append(got, tell(change))
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("told %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func play(b *board, step string) []*podmanagerv1.WatchPoolsResponse {
	replica, what, _ := strings.Cut(step, " ")
	key := &podmanagerv1.PoolKey{Reference: what[1:]}
	switch what {
	case "come":
		b.add(replica)
		return nil
	case "lost":
		return b.lost(replica)
	case "gone":
		return b.gone(replica)
	case "synced":
		return b.change(replica, &podmanagerv1.WatchPoolsResponse{Change: &podmanagerv1.WatchPoolsResponse_Synced_{Synced: &podmanagerv1.WatchPoolsResponse_Synced{}}})
	}
	if what[0] == '-' {
		return b.change(replica, &podmanagerv1.WatchPoolsResponse{Change: &podmanagerv1.WatchPoolsResponse_Removed{Removed: key}})
	}
	return b.change(replica, &podmanagerv1.WatchPoolsResponse{Change: &podmanagerv1.WatchPoolsResponse_Pool{Pool: &podmanagerv1.Pool{Key: key, Replica: replica}}})
}
