// SPDX-License-Identifier: Apache-2.0

// Package component builds the programs of a cluster. They are cached by a key of everything that
// went into them, so that a second start builds nothing.
package component

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
)

// Component is a set of programs built from the same source.
type Component struct {
	Name    string
	Version string
	// Inputs determine the programs in addition to name and version.
	Inputs []string
	// Build writes the programs into dir and needs nothing but Go.
	Build func(ctx context.Context, dir string) error
}

// Key is the key of the component in the cache: equal keys mean equal programs.
func (c Component) Key() string {
	hash := sha256.New()
	for _, input := range append([]string{runtime.Version(), runtime.GOARCH}, c.Inputs...) {
		// The length keeps neighbouring inputs apart.
		fmt.Fprintf(hash, "%d:%s", len(input), input)
	}
	return fmt.Sprintf("%s-%s-%s", c.Name, c.Version, hex.EncodeToString(hash.Sum(nil))[:12])
}
