// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// maxWindow limits the window of a zstd layer, in bytes, because the decompressor allocates the whole window.
const maxWindow = 32 << 20

// Compressed unpacks the next layer, in plain, gzip or zstd format. The digest of its plain form must be diffID.
func (t *Tree) Compressed(ctx context.Context, layer io.Reader, diffID string) error {
	plain, err := decompress(layer)
	if err != nil {
		return err
	}
	defer func() { _ = plain.Close() }()
	sum := sha256.New()
	bounded := &growth{ctx: ctx, Reader: io.TeeReader(plain, sum), tree: t}
	if err := t.Layer(ctx, bounded); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, bounded); err != nil { // the digest includes data after the archive
		return brokenArchive(err)
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != diffID {
		return fault.New(fault.Precondition,
			"a layer has the content %s, and its configuration names %s: push the image again", got, diffID)
	}
	return nil
}

// decompress returns the uncompressed content of a layer. It recognizes the compression by the first bytes of the
// layer, because media types are often wrong.
func decompress(layer io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(layer, 64<<10)
	magic, err := buffered.Peek(4)
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		plain, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, brokenArchive(err)
		}
		return plain, nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		plain, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, brokenArchive(err)
		}
		return plain.IOReadCloser(), nil
	case err != nil && len(magic) == 0:
		return nil, fault.New(fault.Precondition, "a layer is empty: push the image again")
	}
	return io.NopCloser(buffered), nil
}

// growth is a reader of uncompressed layers. It fails if all layers together exceed the size limit, or if ctx is done.
type growth struct {
	io.Reader
	ctx  context.Context //nolint:containedctx // a reader has no other way to know it
	tree *Tree
}

func (g *growth) Read(p []byte) (int, error) {
	if g.ctx.Err() != nil {
		return 0, g.ctx.Err()
	}
	n, err := g.Reader.Read(p)
	if g.tree.read += int64(n); g.tree.read > g.tree.limits.Bytes {
		return n, fault.New(fault.Precondition, "its layers have more than %d MiB uncompressed, which is the limit",
			g.tree.limits.Bytes>>20)
	}
	return n, err
}
