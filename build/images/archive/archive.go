// SPDX-License-Identifier: Apache-2.0

// Package archive writes files into archives that depend on their content alone: without users, and
// with one time for all.
package archive

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// File is a file in an archive.
type File struct {
	Path   string // in the archive
	Source string
	Mode   fs.FileMode
}

// WriteTar writes a gzip-compressed tar file.
func WriteTar(out io.Writer, files []File, modified time.Time) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	err = each(files, func(file File, content *os.File, size int64) error {
		header := &tar.Header{
			Name: file.Path, Mode: int64(file.Mode.Perm()), Size: size, ModTime: modified, Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.Copy(archive, content)
		return err
	})
	if err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// WriteZip writes a zip file, as Windows unpacks them.
func WriteZip(out io.Writer, files []File, modified time.Time) error {
	archive := zip.NewWriter(out)
	err := each(files, func(file File, content *os.File, _ int64) error {
		header := &zip.FileHeader{Name: file.Path, Method: zip.Deflate, Modified: modified.UTC()}
		header.SetMode(file.Mode.Perm())
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = io.Copy(entry, content)
		return err
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

// each calls add for each file, in the order of their paths.
func each(files []File, add func(file File, content *os.File, size int64) error) error {
	byPath := func(a, b File) int { return cmp.Compare(a.Path, b.Path) }
	for _, file := range slices.SortedFunc(slices.Values(files), byPath) {
		if err := open(file, add); err != nil {
			return fmt.Errorf("add %s to an archive: %w", file.Path, err)
		}
	}
	return nil
}

func open(file File, add func(file File, content *os.File, size int64) error) error {
	content, err := os.Open(file.Source)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	info, err := content.Stat()
	if err != nil {
		return err
	}
	return add(file, content, info.Size())
}
