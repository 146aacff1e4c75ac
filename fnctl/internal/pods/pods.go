// SPDX-License-Identifier: Apache-2.0

// Package pods describes function pods to users: the pods of each function, and their phases.
// It makes no requests.
package pods

import (
	"cmp"
	"slices"
	"strings"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Pools are the current pools. The zero Pools is ready to use.
type Pools struct {
	pools map[key]*podmanagerv1.Pool
}

// key identifies a pool. It has no digest while the image is being resolved.
type key struct{ reference, digest string }

func keyOf(k *podmanagerv1.PoolKey) key { return key{k.GetReference(), k.GetDigest()} }

// Apply applies a change.
func (p *Pools) Apply(c *podmanagerv1.WatchPoolsResponse) {
	if p.pools == nil {
		p.pools = map[key]*podmanagerv1.Pool{}
	}
	if pool := c.GetPool(); pool != nil {
		p.pools[keyOf(pool.GetKey())] = pool
	}
	if removed := c.GetRemoved(); removed != nil {
		delete(p.pools, keyOf(removed))
	}
}

// All returns the pools, ordered by reference and digest.
func (p *Pools) All() []*podmanagerv1.Pool {
	all := make([]*podmanagerv1.Pool, 0, len(p.pools))
	for _, pool := range p.pools {
		all = append(all, pool)
	}
	slices.SortFunc(all, func(a, b *podmanagerv1.Pool) int {
		return cmp.Or(cmp.Compare(a.GetKey().GetReference(), b.GetKey().GetReference()),
			cmp.Compare(a.GetKey().GetDigest(), b.GetKey().GetDigest()))
	})
	return all
}

// Is reports whether a pool's reference may belong to the image of a call. It ignores the gateway's default prefix.
// If tag is set, it is a tag or constraint that replaces the image's own tag, and Is accepts every tag of the
// reference.
func Is(reference, image, tag string) bool {
	image, _, _ = strings.Cut(image, "@")
	repository, own := cutTag(image)
	have, haveTag := cutTag(reference)
	if have != repository && !strings.HasSuffix(have, "/"+repository) {
		return false
	}
	return tag != "" || cmp.Or(own, "latest") == haveTag
}

// cutTag splits an image name into repository and tag. The port of a registry is not a tag.
func cutTag(image string) (repository, tag string) {
	colon := strings.LastIndexByte(image, ':')
	if colon < 0 || strings.Contains(image[colon:], "/") {
		return image, ""
	}
	return image[:colon], image[colon+1:]
}
