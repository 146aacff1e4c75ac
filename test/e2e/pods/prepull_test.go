// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/cosigned"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestImagesArePulledAhead lists a function that keeps no pod, with an image that no node has: the node pulls it, and
// the pod of the first evaluation finds it there.
func TestImagesArePulledAhead(t *testing.T) {
	t.Parallel()
	ctx := suite.Context(t)
	image := s.Registry(t, "open").Host + "/e2e/" + strings.ToLower(rand.Text()) + ":v1"
	cosigned.Push(t, catalog(t, "set-namespace:v0.4.5"), image, image)
	sys := microservices(t, map[string]string{"FNR_PREPULL": "true"}, func(sys *system) {
		sys.seeNodes(t)
		sys.cacheConfig(t, "- name: "+image+"\n  minPods: 0\n")
	})
	suite.Until(ctx, t, "the node has pulled the image", func() (bool, string) {
		got := sys.pulls(t, "prepull-")
		return strings.HasPrefix(got, "Successfully pulled image"), got
	})
	suite.Until(ctx, t, "the pod is deleted that had the node pull it", func() (bool, string) {
		pods, err := s.Client.CoreV1().Pods(sys.functions).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(pods.Items) == 0, fmt.Sprint(names(pods.Items))
	})
	if err := suite.SetNamespace(ctx, sys.connect(t), image); err != nil {
		t.Fatal(err)
	}
	pods := sys.functionPods(t)
	if len(pods) != 1 {
		t.Fatalf("the pods are %v, want one of the function", names(pods))
	}
	suite.Until(ctx, t, "the function pod has found the image on the node", func() (bool, string) {
		got := sys.pulls(t, pods[0].Name)
		return strings.Contains(got, "already present on machine"), got
	})
}

// pulls returns what the kubelet reports about the images of function containers, for pods whose names begin with
// a prefix.
func (sys *system) pulls(t *testing.T, prefix string) string {
	t.Helper()
	events, err := s.Client.CoreV1().Events(sys.functions).List(suite.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for _, e := range events.Items {
		about := e.InvolvedObject
		if strings.HasPrefix(about.Name, prefix) && e.Reason == "Pulled" && about.FieldPath == "spec.containers{function}" {
			messages = append(messages, e.Message)
		}
	}
	return strings.Join(messages, "\n")
}

// seeNodes lets the services list and watch nodes, as the component prepull does.
func (sys *system) seeNodes(t *testing.T) {
	t.Helper()
	ctx, rights := suite.Context(t), s.Client.RbacV1()
	meta := metav1.ObjectMeta{Name: sys.services + "-nodes"}
	_, err := rights.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"nodes"}, Verbs: []string{"list", "watch"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		options := metav1.DeleteOptions{}
		err := rights.ClusterRoleBindings().Delete(context.Background(), meta.Name, options)
		if err = errors.Join(err, rights.ClusterRoles().Delete(context.Background(), meta.Name, options)); err != nil {
			t.Error(err)
		}
	})
	_, err = rights.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: sys.services}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(fmt.Errorf("bind the rights to nodes: %w", err))
	}
}
