// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"hash/maphash"
	"path"
)

// paths contains the paths that a layer has written, and their parent directories. It stores hashes with a random
// seed instead of names, because names may need kilobytes, and there are hundreds of thousands of them.
type paths struct {
	seed    maphash.Seed
	written map[uint64]struct{}
	// cleared are the directories without entries of lower layers.
	cleared map[uint64]struct{}
}

func newPaths() paths {
	return paths{seed: maphash.MakeSeed(), written: map[uint64]struct{}{}, cleared: map[uint64]struct{}{}}
}

// addPath records a path that the layer has written.
func (p paths) addPath(at string) {
	for ; at != "." && !p.hasPath(at); at = path.Dir(at) {
		p.written[maphash.String(p.seed, at)] = struct{}{}
	}
}

// hasPath reports whether the layer has written to a path, or below it.
func (p paths) hasPath(at string) bool {
	_, ok := p.written[maphash.String(p.seed, at)]
	return ok
}

// markCleared records that the layer has cleared a directory. It returns false if the directory was cleared before.
func (p paths) markCleared(dir string) bool {
	key := maphash.String(p.seed, dir)
	if _, ok := p.cleared[key]; ok {
		return false
	}
	p.cleared[key] = struct{}{}
	return true
}
