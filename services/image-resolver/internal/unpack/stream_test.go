// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/unpack"
)

func gzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// applyCompressed applies one layer.
func applyCompressed(ctx context.Context, t testing.TB, layer []byte, diffID string) error {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	return unpack.New(root, unpack.Limits{Bytes: 16 << 20, Files: 1000}).
		Compressed(ctx, bytes.NewReader(layer), diffID)
}

func TestCompressions(t *testing.T) {
	plain := archive(t, file("a", "content"))
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, layer := range map[string][]byte{
		"gzip": gzipped(t, plain), "zstd": encoder.EncodeAll(plain, nil), "none": plain,
	} {
		t.Run(name, func(t *testing.T) {
			if err := applyCompressed(t.Context(), t, layer, digest(plain)); err != nil {
				t.Error(err)
			}
		})
	}
}

// sparse returns an entry of an archive that has one byte, at the end of so many.
func sparse(size int64) []byte {
	block := make([]byte, 2*512)
	copy(block, "holes")
	put := func(at int, format string, value int64) { copy(block[at:], fmt.Sprintf(format, value)) }
	put(100, "%07o", 0o644)
	put(124, "%011o", 1)
	block[156] = tar.TypeGNUSparse
	copy(block[257:], "ustar  ")
	put(386, "%011o", size-1) // where the first part begins, and how long it is
	put(398, "%011o", 1)
	put(483, "%011o", size)
	sum := int64(8 * ' ') // as if there were spaces where it is written
	for _, b := range block {
		sum += int64(b)
	}
	put(148, "%06o\x00 ", sum)
	return block
}

func TestBadLayers(t *testing.T) {
	plain := archive(t, file("a", "content"))
	zeros := make([]byte, 20<<20)
	tests := map[string]struct {
		layer  []byte
		diffID string
		want   string
	}{
		"other content":       {gzipped(t, plain), digest(nil), "push the image again"},
		"more after its end":  {gzipped(t, append(bytes.Clone(plain), "more"...)), digest(plain), "push the image again"},
		"half":                {gzipped(t, plain)[:60], digest(plain), "not a valid tar archive"},
		"empty":               {nil, digest(nil), "a layer is empty"},
		"no archive":          {[]byte(strings.Repeat("no archive", 200)), digest(plain), "not a valid tar archive"},
		"more than an image":  {gzipped(t, archive(t, file("zeros", string(zeros)))), digest(plain), "more than 16 MiB"},
		"zeros after its end": {gzipped(t, append(bytes.Clone(plain), zeros...)), digest(plain), "more than 16 MiB unc"},
		"holes": {
			gzipped(t, slices.Concat(sparse(30<<20), archive(t))), digest(slices.Concat(sparse(30<<20), archive(t))),
			"more than 16 MiB",
		},
		"gzip without content": {[]byte{0x1f, 0x8b, 0, 0}, digest(plain), "not a valid tar archive"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := applyCompressed(t.Context(), t, tc.layer, tc.diffID)
			if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want a rejection that says %q", err, tc.want)
			}
		})
	}
}

// TestZerosBecomeHoles has files of 15 MiB that a layer of some kilobytes has, as zeros and as holes.
func TestZerosBecomeHoles(t *testing.T) {
	const size = 15 << 20
	for name, layer := range map[string][]byte{
		"zeros": archive(t, file("holes", "begin"+strings.Repeat("\x00", size-8)+"end")),
		"holes": slices.Concat(sparse(size), archive(t)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			tree := unpack.New(root, unpack.Limits{Bytes: 16 << 20, Files: 10})
			if err := tree.Compressed(t.Context(), bytes.NewReader(gzipped(t, layer)), digest(layer)); err != nil {
				t.Fatal(err)
			}
			info, err := root.Stat("holes")
			if err != nil || info.Size() != size {
				t.Fatalf("the file has %d bytes, %v, want %d", info.Size(), err, size)
			}
			if onDisk := info.Sys().(*syscall.Stat_t).Blocks * 512; onDisk > 1<<20 {
				t.Errorf("it takes %d bytes on disk", onDisk)
			}
			content, err := root.ReadFile("holes")
			zeros, last := bytes.Count(content, []byte{0}), name == "zeros"
			if err != nil || zeros < size-8 || (last && content[size-1] == 0) {
				t.Errorf("%v, %d of %d bytes are zero, and the last one is %d", err, zeros, size, content[size-1])
			}
		})
	}
}

func TestUnpackingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	plain := archive(t, file("a", "content"))
	if err := applyCompressed(ctx, t, plain, digest(plain)); fault.Of(err) != fault.Canceled {
		t.Errorf("error %v, want that of the context", err)
	}
}
