package image

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is one file, folder or link of a layer.
type File struct {
	// Path is absolute in the image; the folders above it are made.
	Path string
	Mode fs.FileMode
	// Source is a file of this machine with the content. Without it the
	// content is Content.
	Source  string
	Content string
	// Link makes a symbolic link with that target.
	Link string
	// Dir makes a folder.
	Dir bool
}

// layer returns a compressed tar file with the files, made before or now.
func (b Builder) layer(files []File) (string, error) {
	key, err := Key(files)
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.Dir, "layer-"+key+".tar.gz")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of layers: %w", err)
	}
	temp, err := os.CreateTemp(b.Dir, "writing-")
	if err != nil {
		return "", fmt.Errorf("making a layer: %w", err)
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	if err := writeLayer(temp, files); err != nil {
		return "", err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return "", fmt.Errorf("keeping a layer: %w", err)
	}
	return path, nil
}

// Key is a hash of all that decides what is in a layer with the files.
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
		return fmt.Errorf("reading a file for a layer: %w", err)
	}
	defer source.Close()
	content := sha256.New()
	if _, err := io.Copy(content, source); err != nil {
		return fmt.Errorf("reading %s for a layer: %w", path, err)
	}
	fmt.Fprintf(sum, "%x\n", content.Sum(nil))
	return nil
}

func writeLayer(out io.Writer, files []File) error {
	// The registry is on this machine: time matters more than size.
	compressed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("compressing a layer: %w", err)
	}
	archive := tar.NewWriter(compressed)
	for _, file := range files {
		if err := addFile(archive, file); err != nil {
			return fmt.Errorf("adding %s to a layer: %w", file.Path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("finishing a layer: %w", err)
	}
	return compressed.Close()
}
