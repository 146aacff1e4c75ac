// SPDX-License-Identifier: Apache-2.0

// Package component builds the programs of a cluster and caches them. The cache key is a hash of all inputs of the
// build, so that a second start of a cluster builds nothing.
package component

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
)

// Component is a set of programs of a cluster that are built from the same source, such as Kubernetes.
type Component struct {
	Name    string
	Version string
	// Inputs are additional inputs of the build, such as linker flags. The cache key depends on them.
	Inputs []string
	// Build builds the programs and writes them into dir.
	Build func(ctx context.Context, dir string) error
}

// Key returns the component's name in the cache. Components with equal keys have equal programs.
func (c Component) Key() string {
	hash := sha256.New()
	for _, input := range append([]string{runtime.Version(), runtime.GOARCH}, c.Inputs...) {
		// Write the length too, so that the inputs "ab", "c" and "a", "bc" get different hashes.
		fmt.Fprintf(hash, "%d:%s", len(input), input)
	}
	return fmt.Sprintf("%s-%s-%s", c.Name, c.Version, hex.EncodeToString(hash.Sum(nil))[:12])
}
