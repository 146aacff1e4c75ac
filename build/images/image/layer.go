// SPDX-License-Identifier: Apache-2.0

package image

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// File is a file, directory or symbolic link in a layer.
type File struct {
	// Path is the absolute path in the image. Container runtimes create missing parent directories.
	Path string
	Mode fs.FileMode
	// Source is the path of a file on this machine whose content is copied. If it is empty, Content is used instead.
	Source  string
	Content string
	// Link is the target of a symbolic link. It is empty for files and directories.
	Link string
	// Dir is true for a directory.
	Dir bool
}

// layer returns the cached layer with the files. If there is none, it creates and caches the layer.
func (b Builder) layer(files []File) (v1.Layer, error) {
	key, err := Key(files)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.Dir, "layer-"+key)
	kept, err := openLayer(dir)
	switch {
	case err == nil:
		return kept, markUsed(dir)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := b.keepLayer(dir, files); err != nil {
		return nil, fmt.Errorf("make a layer: %w", err)
	}
	return openLayer(dir)
}

// markUsed sets the modification time of a cached layer's directory to now. Programs that clean the cache remove layers
// that were not used for a long time.
func markUsed(dir string) error {
	if err := os.Chtimes(dir, time.Time{}, time.Now()); err != nil {
		return fmt.Errorf("mark a kept layer as used: %w", err)
	}
	return nil
}

// keepLayer atomically writes a new layer to its cache directory dir. If dir already exists, it stays unchanged,
// because another goroutine or process has stored an equal layer there.
func (b Builder) keepLayer(dir string, files []File) error {
	if err := os.MkdirAll(b.Dir, 0o750); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(b.Dir, "writing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := writeLayer(filepath.Join(temp, layerFile), files); err != nil {
		return err
	}
	if err := summarizeLayer(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func writeLayer(path string, files []File) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(archiveFiles(out, files), out.Close())
}

// Key returns the cache key of a layer, a hash of the paths, modes and contents of its files.
func Key(files []File) (string, error) {
	sum := sha256.New()
	for _, file := range files {
		fmt.Fprintf(sum, "%q %o %q %q %t\n", file.Path, file.Mode, file.Content, file.Link, file.Dir)
		if err := hashFile(sum, file.Source); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:32], nil
}

func hashFile(sum hash.Hash, path string) error {
	if path == "" {
		return nil
	}
	source, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read a file for a layer: %w", err)
	}
	defer source.Close()
	content := sha256.New()
	if _, err := io.Copy(content, source); err != nil {
		return fmt.Errorf("read %s for a layer: %w", path, err)
	}
	fmt.Fprintf(sum, "%x\n", content.Sum(nil))
	return nil
}
