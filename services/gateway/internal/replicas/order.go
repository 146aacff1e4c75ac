// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// order returns the indices of addresses in the order to ask them in for an image: its
// owner first, then each address that would own it without the addresses before it
// (rendezvous hashing). When an address comes or goes, only its own images move.
func order(addresses []string, image string) []int {
	scores := make([]uint64, len(addresses))
	indices := make([]int, len(addresses))
	for i, address := range addresses {
		scores[i], indices[i] = score(address, image), i
	}
	slices.SortFunc(indices, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(addresses[a], addresses[b]))
	})
	return indices
}

// score is how much an address is to own an image. All versions of the gateway have
// to agree on it.
func score(address, image string) uint64 {
	sum := sha256.Sum256([]byte(address + "\n" + image))
	return binary.BigEndian.Uint64(sum[:])
}
