// SPDX-License-Identifier: Apache-2.0

// Package manifests builds this repository's Kubernetes manifests in the same way as `kubectl kustomize`.
package manifests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Build builds the kustomization in a directory. It returns the objects as YAML, in the order to apply them.
func Build(dir string) ([][]byte, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // namespaces come first
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	var objects [][]byte
	for _, r := range resources.Resources() {
		object, err := r.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", dir, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// strict decodes objects, and returns an error for unknown fields.
var strict = serializer.NewCodecFactory(knownKinds(), serializer.EnableStrict).UniversalDeserializer()

// Decode decodes an object from YAML into its Go type. It rejects unknown fields.
func Decode(object []byte) (runtime.Object, error) {
	decoded, _, err := strict.Decode(object, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode an object: %w\n%s", err, object)
	}
	return decoded, nil
}
