// SPDX-License-Identifier: Apache-2.0

package evalphase_test

import (
	"slices"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/evalphase"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

func TestCounts(t *testing.T) {
	got := evalphase.Counts(map[string]int32{"run": 3, "queue": 12, "pull": 0, "unknown": 7})
	if want := []string{"12 queue", "3 run"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1234567: "1.23ms", 12345678: "12ms", 1234567890: "1.235s", 12345678901: "12.3s", 123456789012: "2m3s",
	} {
		if got := evalphase.Took(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}

func TestEachPhaseHasAName(t *testing.T) {
	for p := podmanagerv1.Phase_PHASE_QUEUED; p <= podmanagerv1.Phase_PHASE_CONNECTING; p++ {
		if !slices.Contains(evalphase.Names, evalphase.Name(p)) || evalphase.Describe(evalphase.Name(p)) == "" {
			t.Errorf("%v has the name %q and the description %q", p, evalphase.Name(p), evalphase.Describe(evalphase.Name(p)))
		}
	}
	for _, p := range []podmanagerv1.Phase{-1, podmanagerv1.Phase_PHASE_UNSPECIFIED, 1000} {
		if evalphase.Name(p) != "" || evalphase.Describe(evalphase.Name(p)) != "" {
			t.Errorf("phase %d has the name %q and the description %q, want none",
				p, evalphase.Name(p), evalphase.Describe(evalphase.Name(p)))
		}
	}
}
