// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
)

// Tree is a tree of packages, as read.
type Tree struct {
	// Root is the package at the tree's root.
	Root *Package

	files map[string]file // by path relative to the root
}

// file is a file as read, with a separate copy of its resources.
type file struct {
	data      []byte
	resources []*yaml.RNode
}

// Read reads the tree of packages below dir, which must have a Kptfile. Files that
// a package's .krmignore names are left out.
func Read(dir string) (*Tree, error) {
	return read(dir, func(r *reader) (*Package, error) { return r.readPackage(".") })
}

// ReadFlat reads all resources below dir as one package without a pipeline.
func ReadFlat(dir string) (*Tree, error) { return readFlat(dir, ".") }

// ReadFile reads the resources of one file as a package without a pipeline. The tree's root is the
// file's directory.
func ReadFile(name string) (*Tree, error) { return readFlat(filepath.Dir(name), filepath.Base(name)) }

// readFlat reads the resources below a directory or file of the tree's root.
func readFlat(root, name string) (*Tree, error) {
	return read(root, func(r *reader) (*Package, error) {
		resources, err := r.readResources(".", name, true)
		return &Package{Path: ".", Resources: resources}, err
	})
}

func read(dir string, readRoot func(*reader) (*Package, error)) (*Tree, error) {
	// The root keeps symbolic links from leaving the package: a package from elsewhere must not
	// send other files of this machine to functions.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	defer root.Close()
	r := &reader{dir: dir, root: root, files: map[string]file{}}
	pkg, err := readRoot(r)
	if err != nil {
		return nil, err
	}
	return &Tree{Root: pkg, files: r.files}, nil
}

// reader collects what it reads below one directory.
type reader struct {
	dir   string
	root  *os.Root
	files map[string]file
}

func (r *reader) readPackage(dir string) (*Package, error) {
	name := path.Join(dir, kptfile.FileName)
	data, err := r.root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a package: it has no %s", r.dir, kptfile.FileName)
	} else if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	pkg := &Package{Path: dir}
	if pkg.Kptfile, err = kptfile.Parse(path.Join(filepath.ToSlash(r.dir), name), data); err != nil {
		return nil, err
	}
	if pkg.Subpackages, err = r.readSubpackages(dir); err != nil {
		return nil, err
	}
	pkg.Resources, err = r.readResources(dir, ".", false)
	return pkg, err
}

// readSubpackages reads the packages directly inside the one at dir, at any depth of directories.
// As in kpt, a .krmignore does not hide them.
func (r *reader) readSubpackages(dir string) ([]*Package, error) {
	var packages []*Package
	err := fs.WalkDir(r.root.FS(), dir, func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("read package: %w", err)
		case !entry.IsDir() || p == dir:
			return nil
		case entry.Name() == ".git":
			return fs.SkipDir
		}
		if _, err := r.root.Stat(path.Join(p, kptfile.FileName)); err != nil {
			return nil //nolint:nilerr // not a package: its directories may hold some
		}
		pkg, err := r.readPackage(p)
		if err != nil {
			return err
		}
		packages = append(packages, pkg)
		return fs.SkipDir
	})
	return packages, err
}

// readResources reads the resources of a package: of the files below name, or of that file, with or
// without those of the packages inside it.
func (r *reader) readResources(dir, name string, subpackages bool) ([]*yaml.RNode, error) {
	pkg := &Package{Path: dir}
	resources, err := kio.LocalPackageReader{
		PackagePath:        filepath.Join(r.dir, filepath.FromSlash(dir), name),
		PackageFileName:    kptfile.FileName,
		IncludeSubpackages: subpackages,
		MatchFilesGlob:     append([]string{kptfile.FileName}, kio.MatchAll...),
		PreserveSeqIndent:  true,
		WrapBareSeqNode:    true,
		SetAnnotations:     map[string]string{PackageAnnotation: pkg.Label()},
	}.Read()
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	for _, resource := range resources {
		if err := r.remember(resource); err != nil {
			return nil, err
		}
	}
	return resources, nil
}

// remember keeps a resource and the original bytes of its file.
func (r *reader) remember(resource *yaml.RNode) error {
	name := FileInTree(resource)
	f, ok := r.files[name]
	if !ok {
		data, err := r.root.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read package: %w", err)
		}
		f.data = data
	}
	f.resources = append(f.resources, resource.Copy())
	r.files[name] = f
	return nil
}
