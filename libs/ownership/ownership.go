// SPDX-License-Identifier: Apache-2.0

// Package ownership assigns each function to one replica of the pod-manager, which then manages the function's pods.
// Replicas that have the same list of replicas choose the same owner without communication.
package ownership

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// Owner returns the index of the replica that owns an image, or -1 if replicas is empty. Replicas are given by their
// addresses, host:port. Owner uses rendezvous hashing: when a replica starts or stops, only the images that this
// replica gains or loses change their owner.
func Owner(replicas []string, image string) int {
	// We remove the digest, because callers that send tag and digest must use the same pods as callers that send only the
	// tag.
	function, _, _ := strings.Cut(image, "@")
	owner := -1
	var best uint64
	for i, replica := range replicas {
		s := score(replica, function)
		if owner < 0 || s > best || (s == best && replica < replicas[owner]) {
			owner, best = i, s
		}
	}
	return owner
}

// score returns the weight of a replica for a function. The replica with the highest weight owns the function. The
// algorithm must never change, because old and new pod-managers must agree on the owner during an update.
func score(replica, function string) uint64 {
	sum := sha256.Sum256([]byte(replica + "\n" + function))
	return binary.BigEndian.Uint64(sum[:])
}
