// SPDX-License-Identifier: Apache-2.0

// Package pkgtree reads trees of kpt packages, and computes file changes from changed resources.
package pkgtree

import (
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
)

// PackageAnnotation is the annotation with the path of the package to which a resource belongs. Functions receive
// it, as in kpt. It is removed before a resource is written.
const PackageAnnotation = "internal.config.kubernetes.io/package-path"

// Package is a package in a [Tree].
type Package struct {
	// Path is the package's directory, relative to the tree's root, with slashes. It is "." for the root.
	Path string
	// Kptfile is the package's Kptfile. It is nil if all files were read as a single package, as by [ReadFlat].
	Kptfile *kptfile.Kptfile
	// Resources are the resources of the package's own files, without the packages inside it.
	Resources []*yaml.RNode
	// Subpackages are the packages directly inside this package, sorted by path.
	Subpackages []*Package
}

// Label returns the value of [PackageAnnotation] for the package, such as "/db", or "/" for the root.
func (p *Package) Label() string {
	return path.Join("/", p.Path)
}

// Owns reports whether a resource belongs to this package, not to a package inside it.
func (p *Package) Owns(resource *yaml.RNode) bool {
	return resource.GetAnnotations()[PackageAnnotation] == p.Label()
}

// Adopt makes this package the owner of all resources without a package. For example, functions create such resources.
func (p *Package) Adopt(resources []*yaml.RNode) error {
	for _, r := range resources {
		if r.GetAnnotations()[PackageAnnotation] != "" {
			continue
		}
		if err := r.PipeE(yaml.SetAnnotation(PackageAnnotation, p.Label())); err != nil {
			return err
		}
	}
	return nil
}

// File returns the path of a resource's file, relative to its package, and the resource's index in the file. Both
// may be empty for a new resource. As in kpt, a path with a leading slash is relative to the package.
func File(resource *yaml.RNode) (file, index string) {
	// GetFileAnnotations has an error result but never sets it.
	file, index, _ = kioutil.GetFileAnnotations(resource)
	return strings.TrimLeft(filepath.ToSlash(file), "/"), index
}

// KptfileOf returns the resource that is the Kptfile of the root package. It is nil if the resources do not contain
// the Kptfile, for example because a function deleted it.
func KptfileOf(resources []*yaml.RNode) *yaml.RNode {
	for _, r := range resources {
		if FileInTree(r) == kptfile.FileName && r.GetKind() == kptfile.FileName {
			return r
		}
	}
	return nil
}

// FileInTree returns the path of a resource's file, relative to the tree's root, with slashes.
func FileInTree(resource *yaml.RNode) string {
	file, _ := File(resource)
	label := resource.GetAnnotations()[PackageAnnotation]
	return path.Join(strings.TrimPrefix(label, "/"), file)
}
