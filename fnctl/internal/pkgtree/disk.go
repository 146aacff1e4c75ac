// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/kio"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
)

const (
	// maxFileBytes is the maximum size of a file, so that an untrusted package cannot exhaust the memory.
	maxFileBytes = 64 << 20
	// maxIgnoreBytes is the maximum size of a .krmignore file. Each path is compared with all patterns, which takes time.
	maxIgnoreBytes = 1 << 20
	// MaxPackageBytes is the maximum size of all files of a package together, so that they fit into memory.
	MaxPackageBytes = 256 << 20
)

// disk reads regular files below a directory, which may be untrusted. It rejects pipes, devices and links that
// leave the directory before it reads from them.
type disk struct {
	dir  string
	root *os.Root
	// left is the number of bytes that may still be read from all files together. It starts at 256 MiB.
	left int64
}

func openDisk(dir string) (*disk, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &disk{dir: dir, root: root, left: MaxPackageBytes}, nil
}

// ReadInside returns the content of a regular file by its name below dir. It rejects links that leave dir.
func ReadInside(dir, name string) ([]byte, error) {
	d, err := openDisk(dir)
	if err != nil {
		return nil, err
	}
	defer d.root.Close()
	return d.read(name)
}

// read returns the content of a file, by its path relative to the directory.
func (d *disk) read(name string) ([]byte, error) {
	file, err := d.open(name)
	if err != nil {
		return nil, d.explainOpen(name, err)
	}
	defer file.Close()
	limit := min(maxFileBytes, d.left)
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) <= limit:
		d.left -= int64(len(data))
		return data, nil
	case limit < maxFileBytes:
		return nil, fmt.Errorf("the files of %s have more than %d MiB together", d.dir, MaxPackageBytes>>20)
	}
	return nil, fmt.Errorf("%s has more than %d MiB", d.displayPath(name), maxFileBytes>>20)
}

// open opens a regular file for reading. It rejects pipes without waiting for a writer. It also rejects links to Git's
// files, because functions must not see or change these files.
func (d *disk) open(name string) (*os.File, error) {
	if link, err := d.root.Lstat(name); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		target, err := resolveLinks(d.root.Name(), name)
		if err == nil && filepath.IsLocal(target) && !mayWriteTo(d.root, target) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("leads to " + target)}
		}
	}
	info, err := d.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errIrregular
	}
	file, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	// Another process may have replaced the file since the first check, for example by a pipe.
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = errIrregular
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

var errIrregular = errors.New("not a regular file")

func (d *disk) explainOpen(name string, err error) error {
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case errors.As(err, &failed) && strings.Contains(failed.Err.Error(), "escapes"):
		return fmt.Errorf("%s is a link that leaves the package", d.displayPath(name))
	case errors.As(err, &failed):
		return fmt.Errorf("%s: %w", d.displayPath(name), failed.Err)
	}
	return fmt.Errorf("%s is %w", d.displayPath(name), err)
}

// displayPath returns the path of a file for messages. It begins with the directory in the user's spelling.
func (d *disk) displayPath(name string) string {
	return filepath.ToSlash(filepath.Join(d.dir, filepath.FromSlash(name)))
}

// listFiles returns the paths of the resource files below a directory, or of a single file. It omits Git's directories
// and files that .krmignore excludes. If subpackages is false, it also omits packages inside the directory.
func (d *disk) listFiles(name string, subpackages bool) ([]string, error) {
	var found []string
	base := name
	if info, err := d.root.Stat(name); err == nil && !info.IsDir() {
		base = path.Dir(name)
	}
	lister := kio.LocalPackageReader{
		PackagePath:        absolutePath(name),
		PackageFileName:    kptfile.FileName,
		IncludeSubpackages: subpackages,
		FileSkipFunc: func(file string) bool {
			if file = path.Join(base, filepath.ToSlash(file)); isResourceFile(file) {
				found = append(found, file)
			}
			return true // kyaml must list the files without reading them
		},
	}
	lister.FileSystem.Set(kyamlDisk{disk: d})
	_, err := lister.Read()
	return found, err
}

// isGitDir reports whether a directory below the root contains files of Git, which fnctl does not read.
func (d *disk) isGitDir(dir string) bool {
	return dir != "." && (isGit(path.Base(dir)) || isRepository(d.root, dir))
}

// isResourceFile reports whether a file of this name is a Kptfile, YAML or JSON, from which kpt reads resources.
func isResourceFile(file string) bool {
	return path.Base(file) == kptfile.FileName || slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(file))
}

// kyamlDisk adapts a disk to kyaml's file system interface. It implements only the methods that list files.
type kyamlDisk struct {
	filesys.FileSystem

	disk *disk
}

// absolutePath converts a path relative to the disk's directory to the absolute path that kyaml's interface requires.
func absolutePath(name string) string { return path.Join("/", name) }

// relativeOf is the inverse of absolutePath. It returns a path relative to the disk's directory.
func relativeOf(file string) string {
	return path.Join(".", strings.TrimPrefix(filepath.ToSlash(file), "/"))
}

// CleanedAbs implements filesys.FileSystem.
func (k kyamlDisk) CleanedAbs(file string) (filesys.ConfirmedDir, string, error) {
	return filesys.ConfirmedDir(file), "", nil
}

// Exists implements filesys.FileSystem. It returns true for a symbolic link even if the link's target is missing.
func (k kyamlDisk) Exists(file string) bool {
	_, err := k.disk.root.Lstat(relativeOf(file))
	return err == nil
}

// Open implements filesys.FileSystem. kyaml opens only files named .krmignore.
func (k kyamlDisk) Open(file string) (filesys.File, error) {
	opened, err := k.disk.open(relativeOf(file))
	if err != nil {
		return nil, k.disk.explainOpen(relativeOf(file), err)
	}
	info, err := opened.Stat()
	if err == nil && info.Size() > maxIgnoreBytes {
		err = fmt.Errorf("%s has more than %d MiB", k.disk.displayPath(relativeOf(file)), maxIgnoreBytes>>20)
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// Walk implements filesys.FileSystem.
func (k kyamlDisk) Walk(file string, visit filepath.WalkFunc) error {
	return fs.WalkDir(k.disk.root.FS(), relativeOf(file), func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return visit(absolutePath(p), nil, err)
		}
		if entry.IsDir() && k.disk.isGitDir(p) {
			return fs.SkipDir
		}
		info, err := entry.Info()
		return visit(absolutePath(p), info, err)
	})
}
