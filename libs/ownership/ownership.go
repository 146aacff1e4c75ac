// SPDX-License-Identifier: Apache-2.0

// Package ownership decides which replica of the pod-manager owns a function. Replicas that see the same replicas agree
// without talking to each other.
package ownership

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// Owner returns the index of the replica that owns an image, or -1 if there are no replicas. Replicas are addresses as
// host:port. When a replica appears or disappears, only its own images change their owner (rendezvous hashing).
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

// functionOf returns the part of an image's name that decides about its owner: the name without the digest. A pool is
// the same for callers with tag and digest and for callers with the tag alone.
func functionOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return name
}

// score returns the weight of a replica for a function. All versions must agree on it.
func score(replica, function string) uint64 {
	sum := sha256.Sum256([]byte(replica + "\n" + function))
	return binary.BigEndian.Uint64(sum[:])
}
