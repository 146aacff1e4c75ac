// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"fmt"
	"slices"
	"testing"
)

func TestOrder(t *testing.T) {
	three := []string{"10.0.0.1:9448", "10.0.0.2:9448", "10.0.0.3:9448"}
	owned := map[string]int{}
	for i := range 3000 {
		image := fmt.Sprintf("example.com/fn-%d:v1", i)
		all := order(three, image)
		owner := three[all[0]]
		owned[owner]++

		shuffled := []string{three[2], three[0], three[1]}
		if other := shuffled[order(shuffled, image)[0]]; other != owner {
			t.Fatalf("%s is owned by %s or by %s, as the addresses are listed", image, owner, other)
		}
		for gone, address := range three {
			two := slices.Delete(slices.Clone(three), gone, gone+1)
			got := two[order(two, image)[0]]
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

// TestOrderIsTheSameInAllVersions holds fast what gateways of all versions have to
// agree on.
func TestOrderIsTheSameInAllVersions(t *testing.T) {
	got := fmt.Sprint(order([]string{"10.0.0.1:9448", "10.0.0.2:9448", "10.0.0.3:9448"}, "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5"))
	if want := "[1 2 0]"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	if got := order(nil, "x"); len(got) != 0 {
		t.Errorf("no addresses in the order %v", got)
	}
}
