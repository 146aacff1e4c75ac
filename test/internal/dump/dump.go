// SPDX-License-Identifier: Apache-2.0

// Package dump writes the objects of a cluster to YAML files, for the analysis of failed tests.
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

// Cluster contains the clients with which to read a cluster's objects.
type Cluster struct {
	Kinds   discovery.DiscoveryInterface
	Objects dynamic.Interface
}

// Namespace writes all nodes and the objects in a namespace to dir, in a file for each kind. If namespace is
// [metav1.NamespaceAll], it writes all objects of the cluster. The error lists the kinds that could not be read.
func (c Cluster) Namespace(ctx context.Context, namespace, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep objects: %w", err)
	}
	// An error means that some API groups are unavailable. The call still returns the kinds of all other groups.
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

func isWanted(kind metav1.APIResource, namespace string) bool {
	switch {
	case kind.Name == "secrets" || !slices.Contains(kind.Verbs, "list"):
		return false // users pass the directory on, so it must not contain Secrets
	default:
		return kind.Namespaced || kind.Name == "nodes" || namespace == metav1.NamespaceAll
	}
}

// write writes the objects of a kind to a file, unless there are none.
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
