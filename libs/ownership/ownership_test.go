// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/ownership"
)

var three = []string{"10.0.0.1:9448", "10.0.0.2:9448", "10.0.0.3:9448"}

// ownerOf returns the address of an image's owner.
func ownerOf(replicas []string, image string) string {
	return replicas[ownership.Owner(replicas, image)]
}

func TestOwner(t *testing.T) {
	owned := map[string]int{}
	for i := range 3000 {
		image := fmt.Sprintf("example.com/fn-%d:v1", i)
		owner := ownerOf(three, image)
		owned[owner]++
		if other := ownerOf([]string{three[2], three[0], three[1]}, image); other != owner {
			t.Fatalf("%s is owned by %s or by %s, depending on the order of the list", image, owner, other)
		}
		for gone, address := range three {
			two := slices.Delete(slices.Clone(three), gone, gone+1)
			if got := ownerOf(two, image); address != owner && got != owner {
				t.Fatalf("%s moved from %s to %s when %s went", image, owner, got, address)
			}
		}
	}
	for address, n := range owned {
		if n < 850 || n > 1150 {
			t.Errorf("%s owns %d of 3000 images", address, n)
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
		if a, b := ownerOf(three, image), ownerOf(three, pinned); a != b {
			t.Fatalf("owner %s of %s, but %s of %s", a, image, b, pinned)
		}
	}
}

// TestOwnerIsTheSameInAllVersions compares with the owners of released versions.
func TestOwnerIsTheSameInAllVersions(t *testing.T) {
	const image = "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5"
	if got := ownership.Owner(three, image); got != 1 {
		t.Errorf("owner %d, want 1", got)
	}
	if got := ownership.Owner([]string{three[0], three[2]}, image); got != 1 {
		t.Errorf("owner %d without the first one, want the last", got)
	}
}
