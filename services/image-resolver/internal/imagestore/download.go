// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/slowclient"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
)

// downloads is the maximum number of attempts to download a layer.
const downloads = 3

// downloadLayer downloads a layer and returns an open file with its verified content, positioned at the beginning. The
// file has no path any longer, so closing it frees its disk space.
func (p *pull) downloadLayer(ctx context.Context, layer oci.Layer) (*os.File, error) {
	if _, err := keyOf(layer.Digest); err != nil {
		return nil, err
	}
	file, err := p.stage.newTemporary()
	if err != nil {
		return nil, err
	}
	backoff := retry.Backoff{First: 200 * time.Millisecond, Jitter: 0.5}
	for attempt := 1; ; attempt++ {
		err = p.tryDownload(ctx, layer, file)
		if err == nil || attempt == downloads || fault.Of(err) != fault.Unavailable || !backoff.Wait(ctx) {
			break
		}
		p.store.cfg.Log.Info("layer download interrupted, retrying", "layer", layer.Digest, "error", err)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	p.bytes += layer.Size
	return file, nil
}

// tryDownload makes a single attempt to download a layer.
func (p *pull) tryDownload(ctx context.Context, layer oci.Layer, file *os.File) error {
	slow := fault.New(fault.Unavailable, "the registry has sent the layer %s too slowly: it may pause for %v, "+
		"and must send %d KiB per second", layer.Digest, slowclient.Grace, slowclient.BytesPerSecond>>10)
	return p.store.cfg.Source.Layer(ctx, p.repository, layer.Digest, func(content io.Reader, stop func(error)) error {
		meter := slowclient.New(func() { stop(slow) })
		watched := &pacedReader{Reader: content, keepsPace: meter.Do, slow: slow, step: p.reportProgress}
		return storeLayer(watched, layer, file)
	})
}

// storeLayer writes the content of a layer to a file, and checks its size and digest. It empties the file first,
// because an interrupted download may have left content in it.
func storeLayer(content io.Reader, layer oci.Layer, file *os.File) error {
	_, seekErr := file.Seek(0, io.SeekStart)
	if err := errors.Join(seekErr, file.Truncate(0)); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(content, layer.Size+1))
	if err != nil {
		return err
	}
	if n != layer.Size {
		return fault.New(fault.Precondition, "the registry sent %s bytes of the layer %s, and the manifest says %d: "+
			"something on the way is broken, or tampers with it", describeSize(n, layer.Size), layer.Digest, layer.Size)
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != layer.Digest {
		return fault.New(fault.Precondition, "the registry returned the layer %s instead of %s: "+
			"something on the way is broken, or tampers with it", got, layer.Digest)
	}
	return nil
}

// pacedReader is a reader that reports the progress of a download. It fails if the registry sends too slowly.
type pacedReader struct {
	io.Reader
	keepsPace func(transfer func() (earned int)) bool
	slow      error
	read      int64
	step      func(read int64)
}

func (w *pacedReader) Read(p []byte) (n int, err error) {
	inTime := w.keepsPace(func() int {
		n, err = w.Reader.Read(p)
		return n
	})
	if !inTime {
		return 0, w.slow
	}
	w.read += int64(n)
	w.step(w.read)
	return n, err
}
