// SPDX-License-Identifier: Apache-2.0

// Package dump writes the objects of a cluster to files, for the analysis of failed tests.
package dump

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// Cluster is the API of the cluster whose objects are kept.
type Cluster struct {
	Kinds   discovery.DiscoveryInterface
	Objects dynamic.Interface
}

// Namespace writes a file to dir for each kind of objects in a namespace, and a file for the nodes. For
// [metav1.NamespaceAll] it writes a file for each kind of the cluster. The error lists the missing kinds.
func (c Cluster) Namespace(ctx context.Context, namespace, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep objects: %w", err)
	}
	// The available lists are returned together with the error about unavailable lists.
	lists, err := c.Kinds.ServerPreferredResources()
	if err != nil {
		err = fmt.Errorf("list the kinds of objects: %w", err)
	}
	for _, list := range lists {
		version, unknown := schema.ParseGroupVersion(list.GroupVersion)
		if unknown != nil {
			continue
		}
		for _, kind := range list.APIResources {
			if isWanted(kind, namespace) {
				err = errors.Join(err, c.write(ctx, version.WithResource(kind.Name), kind.Namespaced, namespace, dir))
			}
		}
	}
	return err
}

// isWanted reports whether objects of the kind belong to the namespace, or to its pods.
func isWanted(kind metav1.APIResource, namespace string) bool {
	switch {
	case kind.Name == "secrets" || !slices.Contains(kind.Verbs, "list"):
		return false // Secrets must not be in a directory that users pass on.
	default:
		return kind.Namespaced || kind.Name == "nodes" || namespace == metav1.NamespaceAll
	}
}

// write writes the objects of a kind, if there are any.
func (c Cluster) write(ctx context.Context, resource schema.GroupVersionResource, namespaced bool, namespace,
	dir string,
) error {
	if !namespaced {
		namespace = metav1.NamespaceAll
	}
	found, err := c.Objects.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	if len(found.Items) == 0 {
		return nil
	}
	content, err := yaml.Marshal(found)
	if err != nil {
		return fmt.Errorf("dump %s: %w", resource.Resource, err)
	}
	return os.WriteFile(filepath.Join(dir, resource.Resource+".yaml"), content, 0o644)
}
