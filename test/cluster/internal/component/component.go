// SPDX-License-Identifier: Apache-2.0

// Package component builds the programs of a cluster and caches them. The cache key is a hash of all build inputs, so
// that only the first start of a cluster builds programs.
package component

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
)

// Component is a set of programs that are built from the same source, such as Kubernetes.
type Component struct {
	Name    string
	Version string
	// Inputs are further inputs of the build, such as linker flags. They become part of the cache key.
	Inputs []string
	// Build builds the programs and writes them to dir.
	Build func(ctx context.Context, dir string) error
}

// Key returns the component's name in the cache. The name contains a hash of all inputs of the build.
func (c Component) Key() string {
	hash := sha256.New()
	for _, input := range append([]string{runtime.Version(), runtime.GOARCH}, c.Inputs...) {
		// Without the length, the inputs "ab", "c" and "a", "bc" would have the same hash.
		fmt.Fprintf(hash, "%d:%s", len(input), input)
	}
	return fmt.Sprintf("%s-%s-%s", c.Name, c.Version, hex.EncodeToString(hash.Sum(nil))[:12])
}
