// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"testing"
)

// frame returns a frame with so many bytes of content.
func frame(kind, flags byte, size int) []byte {
	header := []byte{byte(size >> 16), byte(size >> 8), byte(size), kind, flags, 0, 0, 0, 1}
	return append(header, make([]byte, size)...)
}

// TestFrames cuts what a server writes at every place: a frame fits in between only
// where one ends: not among the headers of one answer, and not before the first.
func TestFrames(t *testing.T) {
	const data, ping = 0x0, 0x6
	written := slices.Concat(
		frame(0x4, 0, 18), // settings
		frame(frameHeaders, flagEndHeaders, 300),
		frame(data, 0, 70000),
		frame(frameHeaders, 0, 16384), // which go on
		frame(frameContinuation, 0, 10),
		frame(frameContinuation, flagEndHeaders, 0),
		frame(ping, 0, 8),
	)
	between := []int{frameHeaderBytes + 18}
	for _, size := range []int{300, 70000, 16384 + 9 + 10 + 9, 8} {
		between = append(between, between[len(between)-1]+frameHeaderBytes+size)
	}
	for at := range len(written) + 1 {
		var f frames
		f.parseWritten(written[:at/2])
		f.parseWritten(written[at/2 : at])
		if got, want := f.atBoundary(), slices.Contains(between, at); got != want {
			t.Fatalf("after %d bytes: between %v, want %v", at, got, want)
		}
	}
}
