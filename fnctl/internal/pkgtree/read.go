// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
)

// Tree is a tree of packages. It keeps the original contents of the files, to find the changes after the rendering.
type Tree struct {
	// Root is the package at the tree's root.
	Root *Package

	files map[string]file // keys are paths relative to the root
}

// file contains a file's original content and resources. The resources are copies that functions cannot change.
type file struct {
	data      []byte
	resources []*yaml.RNode
}

// Read reads the packages below dir, which must have a Kptfile. It omits files that .krmignore files name.
func Read(dir string) (*Tree, error) {
	return read(dir, func(r *reader) (*Package, error) { return r.readPackage(".") })
}

// ReadKptfile reads only a package's Kptfile, to store a failure in it if other files cannot be read.
func ReadKptfile(dir string) (*Tree, error) {
	return read(dir, func(r *reader) (*Package, error) {
		data, err := r.read(kptfile.FileName)
		if err != nil {
			return nil, err
		}
		pkg := &Package{Path: "."}
		if pkg.Kptfile, err = kptfile.Parse(r.displayPath(kptfile.FileName), data); err != nil {
			return nil, err
		}
		pkg.Resources, err = r.parse(pkg.Path, kptfile.FileName, data)
		return pkg, err
	})
}

// ReadFlat reads all resources below dir as a single package. It ignores the pipelines of Kptfiles.
func ReadFlat(dir string) (*Tree, error) { return readFlat(dir, ".") }

// ReadFile reads the resources of a file as a package without a pipeline. The tree's root is the file's directory.
func ReadFile(name string) (*Tree, error) { return readFlat(filepath.Dir(name), filepath.Base(name)) }

// readFlat reads a file, or all files below a directory, as a single package. name is the path relative to root.
func readFlat(root, name string) (*Tree, error) {
	return read(root, func(r *reader) (*Package, error) {
		resources, err := r.readResources(".", name, true)
		return &Package{Path: ".", Resources: resources}, err
	})
}

func read(dir string, readRoot func(*reader) (*Package, error)) (*Tree, error) {
	d, err := openDisk(dir)
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	defer d.root.Close()
	r := &reader{disk: d, files: map[string]file{}}
	pkg, err := readRoot(r)
	if err != nil {
		return nil, err
	}
	return &Tree{Root: pkg, files: r.files}, nil
}

// reader reads the files of a tree and keeps their original contents.
type reader struct {
	*disk

	files map[string]file
}

func (r *reader) readPackage(dir string) (*Package, error) {
	name := path.Join(dir, kptfile.FileName)
	data, err := r.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a package: it has no %s", r.dir, kptfile.FileName)
	} else if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	pkg := &Package{Path: dir}
	if pkg.Kptfile, err = kptfile.Parse(r.displayPath(name), data); err != nil {
		return nil, err
	}
	if pkg.Subpackages, err = r.readSubpackages(dir); err != nil {
		return nil, err
	}
	pkg.Resources, err = r.readResources(dir, ".", false)
	return pkg, err
}

// readSubpackages reads the packages below dir at any depth, and recursively the packages inside them. As in kpt,
// .krmignore does not hide packages.
func (r *reader) readSubpackages(dir string) ([]*Package, error) {
	var packages []*Package
	err := fs.WalkDir(r.root.FS(), dir, func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("read package: %w", err)
		case !entry.IsDir() || p == dir:
			return nil
		case r.isGitDir(p):
			return fs.SkipDir
		}
		if _, err := r.root.Lstat(path.Join(p, kptfile.FileName)); err != nil {
			return nil //nolint:nilerr // not a package: its directories may hold some
		}
		pkg, err := r.readPackage(p)
		if err != nil {
			return err
		}
		packages = append(packages, pkg)
		return fs.SkipDir
	})
	// As in kpt, packages are sorted by their paths as strings: app-db/web is before app/web.
	slices.SortFunc(packages, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	return packages, err
}

// readResources reads the resources of one file, or of all files below a directory, in the package at dir. If
// subpackages is true, it includes the packages inside this package.
func (r *reader) readResources(dir, name string, subpackages bool) ([]*yaml.RNode, error) {
	names, err := r.listFiles(path.Join(dir, name), subpackages)
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	contents := make([][]byte, 0, len(names))
	for _, name := range names {
		data, err := r.read(name)
		if err != nil {
			return nil, fmt.Errorf("read package: %w", err)
		}
		contents = append(contents, data)
	}
	var all []*yaml.RNode
	for i, name := range names {
		resources, err := r.parse(dir, name, contents[i])
		if err != nil {
			return nil, fmt.Errorf("read package: %w", err)
		}
		all = append(all, resources...)
	}
	return all, nil
}

// parse returns the resources of a file. It also stores the content and copies of the resources, to find changes later.
func (r *reader) parse(dir, name string, data []byte) ([]*yaml.RNode, error) {
	inPackage := strings.TrimPrefix(name, dir+"/")
	resources, err := (&kio.ByteReader{
		Reader:            bytes.NewReader(data),
		DisableUnwrapping: true,
		PreserveSeqIndent: true,
		WrapBareSeqNode:   true,
		SetAnnotations: map[string]string{
			PackageAnnotation: (&Package{Path: dir}).Label(), kioutil.PathAnnotation: inPackage, oldPathAnnotation: inPackage,
		},
	}).Read()
	if err != nil {
		return nil, fmt.Errorf("%s%w; if the file is not a resource, name it in .krmignore", r.displayPath(name),
			parseProblem(data))
	}
	f := file{data: data}
	for _, resource := range resources {
		f.resources = append(f.resources, resource.Copy())
	}
	if len(resources) > 0 {
		r.files[name] = f
	}
	return resources, nil
}
