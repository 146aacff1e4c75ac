// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Annotations for a resource's file, index and id in old SDKs. Current SDKs use the names in package kioutil.
const (
	oldPathAnnotation  = "config.kubernetes.io/path"
	oldIndexAnnotation = "config.kubernetes.io/index"
	oldIDAnnotation    = "config.k8s.io/id"
)

// bookkeeping lists internal annotations, which contain a resource's file, package and number for functions. They do
// not belong to the user, so fnctl never writes them to files.
var bookkeeping = []string{
	PackageAnnotation,
	kioutil.PathAnnotation, oldPathAnnotation,
	kioutil.IndexAnnotation, oldIndexAnnotation,
	kioutil.IdAnnotation, oldIDAnnotation,
	kioutil.SeqIndentAnnotation,
	// After a failed function, kyaml does not remove this annotation, so fnctl must remove it.
	migrationAnnotation,
}

// migrationAnnotation is the key of kyaml's annotation that numbers resources while a function runs. We define it here,
// because kyaml does not export it.
const migrationAnnotation = "internal.config.kubernetes.io/annotations-migration-resource-id"

// groupByFile groups resources by file, and sorts the resources of each file by index. As in kpt, resources with equal
// indexes keep their order. A resource without an index gets the highest index in its file.
func groupByFile(resources []*yaml.RNode) (map[string][]*yaml.RNode, error) {
	byFile := map[string][]*yaml.RNode{}
	for _, r := range resources {
		path := FileInTree(r)
		if !MayWrite(path) {
			return nil, fmt.Errorf("%s %s would be written to %q, outside of the package or into its .git", r.GetKind(),
				r.GetName(), path)
		}
		byFile[path] = append(byFile[path], r)
	}
	for _, rs := range byFile {
		highest := 0
		for _, r := range rs {
			highest = max(highest, positionOf(r))
		}
		place := func(r *yaml.RNode) int {
			if n := positionOf(r); n >= 0 {
				return n
			}
			return highest
		}
		slices.SortStableFunc(rs, func(a, b *yaml.RNode) int { return cmp.Compare(place(a), place(b)) })
	}
	return byFile, nil
}

// positionOf returns the index of a resource in its file. It is -1 if the resource has no index.
func positionOf(resource *yaml.RNode) int {
	_, index := File(resource)
	if n, err := strconv.Atoi(index); err == nil {
		return n
	}
	return -1
}

// encode returns the content of a file with the given resources. Documents that contain only comments keep their
// original positions.
func encode(path string, comments []comment, resources []*yaml.RNode) ([]byte, error) {
	if len(comments) == 0 {
		return encodeAll(path, resources...)
	}
	var documents [][]byte
	for _, r := range resources {
		for len(comments) > 0 && comments[0].index <= max(positionOf(r), 0) {
			documents, comments = append(documents, []byte(comments[0].text)), comments[1:]
		}
		document, err := encodeAll(path, r)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	for _, c := range comments {
		documents = append(documents, []byte(c.text))
	}
	return bytes.Join(documents, []byte("---\n")), nil
}

func encodeAll(path string, resources ...*yaml.RNode) ([]byte, error) {
	var out bytes.Buffer
	if err := WriteDocuments(&out, resources); err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return out.Bytes(), nil
}

// Strip returns a copy of a resource without the bookkeeping annotations, which do not belong to the user.
func Strip(resource *yaml.RNode) (*yaml.RNode, error) {
	resource = resource.Copy()
	for _, a := range bookkeeping {
		if err := resource.PipeE(yaml.ClearAnnotation(a)); err != nil {
			return nil, err
		}
	}
	return resource, yaml.ClearEmptyAnnotations(resource)
}

// WriteList writes resources as a ResourceList. Annotations contain the path of each resource's file in the tree.
func WriteList(w io.Writer, resources []*yaml.RNode) error { return WriteListFor(w, nil, resources) }

// WriteListFor is like [WriteList], but also writes config as the list's functionConfig. It omits a config that is nil.
func WriteListFor(w io.Writer, config *yaml.RNode, resources []*yaml.RNode) error {
	placed := make([]*yaml.RNode, 0, len(resources))
	for _, r := range resources {
		r = r.Copy()
		if err := placeInTree(r); err != nil {
			return err
		}
		placed = append(placed, r)
	}
	if config != nil {
		config = config.Copy()
		if err := placeInTree(config); err != nil {
			return err
		}
	}
	return kio.ByteWriter{
		Writer: w, KeepReaderAnnotations: true,
		WrappingAPIVersion: kio.ResourceListAPIVersion, WrappingKind: kio.ResourceListKind,
		FunctionConfig: config,
	}.Write(placed)
}

// placeInTree converts a resource's path annotations. They become relative to the tree's root, not to the package.
func placeInTree(r *yaml.RNode) error {
	if path := FileInTree(r); path != "" {
		for _, key := range []string{kioutil.PathAnnotation, oldPathAnnotation} {
			if err := r.PipeE(yaml.SetAnnotation(key, path)); err != nil {
				return err
			}
		}
	}
	return r.PipeE(yaml.ClearAnnotation(PackageAnnotation))
}

// WriteDocuments writes resources as YAML documents, without the annotations that name their files.
func WriteDocuments(w io.Writer, resources []*yaml.RNode) error {
	return kio.ByteWriter{Writer: w, ClearAnnotations: bookkeeping}.Write(resources)
}

// separator matches the line between two YAML documents, as in kyaml.
var separator = regexp.MustCompile(`\n---.*\n`)

// comment is a YAML document that contains only comments, such as a licence at the top. Functions never receive it.
type comment struct {
	text string
	// index is the number of resources before the comment in the file.
	index int
}

// findComments returns the YAML documents of a file that contain only comments. JSON files have none.
func findComments(file string, data []byte) []comment {
	if path.Ext(file) == ".json" || !bytes.Contains(data, []byte("#")) {
		return nil
	}
	var found []comment
	index := 0
	for _, text := range separator.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), -1) {
		switch {
		case hasResource(text):
			index++
		case strings.Contains(text, "#"):
			found = append(found, comment{text: strings.TrimRight(text, "\n") + "\n", index: index})
		}
	}
	return found
}

// hasResource reports whether kyaml finds a resource in a document.
func hasResource(document string) bool {
	resources, err := Parse([]byte(document))
	return err != nil || len(resources) > 0
}
