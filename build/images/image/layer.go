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

// File is a file, directory or link of a layer.
type File struct {
	// Path is absolute in the image; the directories above it are created.
	Path string
	Mode fs.FileMode
	// Source is a file of this machine with the content; if it is empty, Content is the content.
	Source  string
	Content string
	// Link makes a symbolic link with that target.
	Link string
	// Dir makes a directory.
	Dir bool
}

// layer returns the layer with the files, made before or now.
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

// markUsed marks a layer as used now, for programs that remove unused layers.
func markUsed(dir string) error {
	if err := os.Chtimes(dir, time.Time{}, time.Now()); err != nil {
		return fmt.Errorf("mark a kept layer as used: %w", err)
	}
	return nil
}

// keepLayer creates the layer's directory as a whole or not at all. If the same layer is made concurrently, here or
// in another process, the first layer stays.
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

// Key is a hash of everything that determines a layer with the files.
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
