// SPDX-License-Identifier: Apache-2.0

// Package archive writes files into archives that depend on their content alone: without users, and
// with one time for all.
package archive

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// File is a file in an archive.
type File struct {
	Path   string // in the archive
	Source string
	Mode   fs.FileMode
}

// Tree returns all files of a directory, as parts of a directory of the archive.
func Tree(dir, as string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		files = append(files, File{Path: as + "/" + filepath.ToSlash(relative), Source: path, Mode: 0o644})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the files of an archive: %w", err)
	}
	return files, nil
}

// Create creates the file of an archive. write is one of the functions below.
func Create(path string, write func(io.Writer, []File, time.Time) error, files []File, modified time.Time) error {
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create an archive: %w", err)
	}
	return errors.Join(write(out, files, modified), out.Close())
}

// WriteTarGz writes a gzip-compressed tar file.
func WriteTarGz(out io.Writer, files []File, modified time.Time) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(WriteTar(compressed, files, modified), compressed.Close())
}

// WriteTar writes a tar file.
func WriteTar(out io.Writer, files []File, modified time.Time) error {
	archive := tar.NewWriter(out)
	err := each(files, func(file File, content *os.File, size int64) error {
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
	return archive.Close()
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
