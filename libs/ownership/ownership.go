// SPDX-License-Identifier: Apache-2.0

// Package ownership decides which replica of the pod-manager owns a function. Gateways and
// pod-managers use it, so that they agree without talking to each other: with the same
// replicas in view, a gateway asks the owner first.
package ownership

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
)

// Order returns the indices of replicas, which are addresses as host:port, in the order in
// which they own an image: the owner first, then each replica that would own the image without
// the replicas before it (rendezvous hashing). When a replica comes or goes, only its own
// images change their owner.
func Order(replicas []string, image string) []int {
	function := functionOf(image)
	scores := make([]uint64, len(replicas))
	indices := make([]int, len(replicas))
	for i, replica := range replicas {
		scores[i], indices[i] = score(replica, function), i
	}
	slices.SortFunc(indices, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(replicas[a], replicas[b]))
	})
	return indices
}

// Owner returns the index of the replica that owns an image; -1 if there are no replicas.
func Owner(replicas []string, image string) int {
	function, owner := functionOf(image), -1
	var best uint64
	for i, replica := range replicas {
		s := score(replica, function)
		if owner < 0 || s > best || s == best && replica < replicas[owner] {
			owner, best = i, s
		}
	}
	return owner
}

// functionOf returns what decides about an image's owner: its name without the digest. A pool
// is the same for callers who name the tag alone, and for callers who name tag and digest.
func functionOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return name
}

// score is how much a replica is to own a function. All versions have to agree on it.
func score(replica, function string) uint64 {
	sum := sha256.Sum256([]byte(replica + "\n" + function))
	return binary.BigEndian.Uint64(sum[:])
}
