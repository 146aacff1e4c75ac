// SPDX-License-Identifier: Apache-2.0

package image

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Files in the directory of a cached layer. The summary contains the layer's digests and size in JSON.
const (
	layerFile   = "layer.tar.gz"
	summaryFile = "summary.json"
)

// keptLayer is a layer in the cache of a Builder. The cache also stores the layer's digests, because computing them
// requires reading and decompressing the whole layer.
type keptLayer struct {
	path    string
	summary summary
}

type summary struct {
	Digest v1.Hash `json:"digest"`
	DiffID v1.Hash `json:"diffID"`
	Size   int64   `json:"size"`
}

// openLayer returns the cached layer in the directory dir. The error is fs.ErrNotExist if dir contains no layer.
func openLayer(dir string) (v1.Layer, error) {
	content, err := os.ReadFile(filepath.Join(dir, summaryFile))
	if err != nil {
		return nil, fmt.Errorf("read a kept layer: %w", err)
	}
	layer := &keptLayer{path: filepath.Join(dir, layerFile)}
	if err := json.Unmarshal(content, &layer.summary); err != nil {
		return nil, fmt.Errorf("read a kept layer (remove %s): %w", dir, err)
	}
	return layer, nil
}

// summarizeLayer writes the digests and the size of the layer in dir to a file in dir, from which openLayer reads them.
func summarizeLayer(dir string) error {
	layer, err := tarball.LayerFromFile(filepath.Join(dir, layerFile))
	if err != nil {
		return fmt.Errorf("read a new layer: %w", err)
	}
	var computed summary
	if computed.Digest, err = layer.Digest(); err != nil {
		return fmt.Errorf("hash a new layer: %w", err)
	}
	if computed.DiffID, err = layer.DiffID(); err != nil {
		return fmt.Errorf("hash a new layer: %w", err)
	}
	if computed.Size, err = layer.Size(); err != nil {
		return fmt.Errorf("measure a new layer: %w", err)
	}
	content, err := json.Marshal(computed)
	if err != nil {
		return fmt.Errorf("keep a new layer: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, summaryFile), content, 0o600)
}

func (l *keptLayer) Digest() (v1.Hash, error)            { return l.summary.Digest, nil }
func (l *keptLayer) DiffID() (v1.Hash, error)            { return l.summary.DiffID, nil }
func (l *keptLayer) Size() (int64, error)                { return l.summary.Size, nil }
func (l *keptLayer) MediaType() (types.MediaType, error) { return types.DockerLayer, nil }
func (l *keptLayer) Compressed() (io.ReadCloser, error)  { return os.Open(l.path) }

// Uncompressed returns the uncompressed content. The interface v1.Layer requires this method, but pushes do not use it.
func (l *keptLayer) Uncompressed() (io.ReadCloser, error) {
	layer, err := tarball.LayerFromFile(l.path)
	if err != nil {
		return nil, fmt.Errorf("read a kept layer: %w", err)
	}
	return layer.Uncompressed()
}
