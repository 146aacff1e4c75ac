// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/ownership"
)

var three = []string{"10.0.0.1:9448", "10.0.0.2:9448", "10.0.0.3:9448"}

func TestOrder(t *testing.T) {
	owned := map[string]int{}
	for i := range 3000 {
		image := fmt.Sprintf("example.com/fn-%d:v1", i)
		all := ownership.Order(three, image)
		owner := three[all[0]]
		owned[owner]++

		shuffled := []string{three[2], three[0], three[1]}
		if other := shuffled[ownership.Order(shuffled, image)[0]]; other != owner {
			t.Fatalf("%s is owned by %s or by %s, depending on the order of the list", image, owner, other)
		}
		for gone, address := range three {
			two := slices.Delete(slices.Clone(three), gone, gone+1)
			got := two[ownership.Order(two, image)[0]]
			if address != owner && got != owner {
				t.Fatalf("%s moved from %s to %s when %s went", image, owner, got, address)
			}
			if address == owner && got != three[all[1]] {
				t.Fatalf("%s moved to %s, want the next in order, %s", image, got, three[all[1]])
			}
		}
	}
	for address, n := range owned {
		if n < 850 || n > 1150 {
			t.Errorf("%s owns %d of 3000 images", address, n)
		}
	}
}

func TestOwnerIsFirstInOrder(t *testing.T) {
	for i := range 1000 {
		image := fmt.Sprintf("example.com/fn-%d:v1", i)
		if got, want := ownership.Owner(three, image), ownership.Order(three, image)[0]; got != want {
			t.Fatalf("owner %d of %s, want %d", got, image, want)
		}
	}
	if got := ownership.Owner(nil, "x"); got != -1 {
		t.Errorf("owner %d among no replicas", got)
	}
}

// TestDigestDoesNotChangeTheOwner: callers by tag, and callers by tag and digest, use one pool.
func TestDigestDoesNotChangeTheOwner(t *testing.T) {
	for i := range 1000 {
		image := fmt.Sprintf("ghcr.io/org/fn%d:v1", i)
		pinned := image + fmt.Sprintf("@sha256:%064x", i)
		if a, b := ownership.Order(three, image), ownership.Order(three, pinned); !slices.Equal(a, b) {
			t.Fatalf("order %v of %s, but %v of %s", a, image, b, pinned)
		}
	}
}

// TestOrderIsTheSameInAllVersions compares with the order of released versions.
func TestOrderIsTheSameInAllVersions(t *testing.T) {
	got := fmt.Sprint(ownership.Order(three, "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5"))
	if want := "[1 2 0]"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	if got := ownership.Order(nil, "x"); len(got) != 0 {
		t.Errorf("no addresses in the order %v", got)
	}
}
