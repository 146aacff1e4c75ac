// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"bytes"
	"testing"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/unpack"
)

// FuzzLayers applies two layers of any bytes. Nothing may be written outside of the tree, which
// apply checks, and what is accepted may not be more than allowed.
func FuzzLayers(f *testing.F) {
	f.Add(archive(f, file("a", "1"), symlink("l", "a")), archive(f, file(".wh.a", ""), hardlink("b", "l")))
	f.Add(archive(f, symlink("var/run", "/run")), archive(f, file("var/run/x", "1")))
	f.Add(archive(f, symlink("d/e", "../..")), archive(f, file("d/e/x", "1"), file("d/.wh..wh..opq", "")))
	f.Add(gzipped(f, archive(f, file("a", "1"))), []byte("no archive"))
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		bounded := unpack.Limits{Bytes: 1 << 20, Files: 50}
		_, tree, err := apply(t, bounded, lower, upper)
		if err == nil && (tree.Files() > bounded.Files || tree.Bytes() > bounded.Bytes) {
			t.Errorf("%d files with %d bytes were accepted", tree.Files(), tree.Bytes())
		}
		_ = applyCompressed(t.Context(), t, bytes.Clone(lower), digest(lower))
	})
}
