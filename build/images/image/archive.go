// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
)

// archiveFiles writes the files to out as a gzip-compressed tar archive, the format of image layers.
func archiveFiles(out io.Writer, files []File) error {
	// Most layers are pushed to a registry on this machine, so fast compression matters more than small layers.
	compressed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("compress a layer: %w", err)
	}
	archive := tar.NewWriter(compressed)
	for _, file := range files {
		if err := addFile(archive, file); err != nil {
			return fmt.Errorf("add %s to a layer: %w", file.Path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("finish a layer: %w", err)
	}
	return compressed.Close()
}

// addFile adds a file to the archive. Modification times and owners stay zero, so that equal files always give a
// layer with the same digest. Parent directories get no entries, because container runtimes create them.
func addFile(archive *tar.Writer, file File) error {
	header := &tar.Header{Name: strings.TrimPrefix(file.Path, "/"), Mode: int64(file.Mode.Perm()), Format: tar.FormatPAX}
	switch {
	case file.Link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, file.Link
		return archive.WriteHeader(header)
	case file.Dir:
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
		return archive.WriteHeader(header)
	case file.Source != "":
		return addSource(archive, header, file.Source)
	default:
		header.Size = int64(len(file.Content))
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.WriteString(archive, file.Content)
		return err
	}
}

func addSource(archive *tar.Writer, header *tar.Header, path string) error {
	source, err := os.Open(path)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, source)
	return err
}
