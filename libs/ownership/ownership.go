// SPDX-License-Identifier: Apache-2.0

// Package ownership decides which replica of the pod-manager owns a function. Replicas that know the same list of
// replicas come to the same result without communication.
package ownership

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// Owner returns the index of the replica that owns an image, or -1 if there are no replicas. Replicas contains
// addresses, as host:port. When a replica appears or disappears, only the images that it owns change their owner
// (rendezvous hashing).
func Owner(replicas []string, image string) int {
	function, owner := functionOf(image), -1
	var best uint64
	for i, replica := range replicas {
		s := score(replica, function)
		if owner < 0 || s > best || (s == best && replica < replicas[owner]) {
			owner, best = i, s
		}
	}
	return owner
}

// functionOf returns the part of an image's name that determines the owner: the name without the digest. The digest
// must not matter, because callers that send tag and digest share a pool with callers that send only the tag.
func functionOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return name
}

// score returns the weight of a replica for a function. It must be the same in all versions of the pod-manager.
func score(replica, function string) uint64 {
	sum := sha256.Sum256([]byte(replica + "\n" + function))
	return binary.BigEndian.Uint64(sum[:])
}
