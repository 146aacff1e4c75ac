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
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/cosigned"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestImagesArePulledAhead lists a function that keeps no pod, with an image that no node has: the node pulls it, and
// the first evaluation succeeds although the registry does not have the image any more.
func TestImagesArePulledAhead(t *testing.T) {
	t.Parallel()
	image := s.Registry(t, "open").Host + "/e2e/" + strings.ToLower(rand.Text()) + ":v1"
	digest := cosigned.Push(t, catalog(t, "set-namespace:v0.4.5"), image, image)
	began := time.Now()
	sys := microservices(t, map[string]string{"FNR_PREPULL": "true"}, func(sys *system) {
		sys.seeNodes(t)
		sys.cacheConfig(t, "- name: "+image+"\n  minPods: 0\n")
	})
	sys.explainPrepulls(t)
	s.AwaitLog(t, sys.services, sys.manager, began, "image pulled ahead") // a node that fails tries again after a minute
	suite.Until(suite.Context(t), t, "the pre-pull pod is deleted", func() (bool, string) {
		pods, err := s.Client.CoreV1().Pods(sys.functions).List(suite.Context(t), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(pods.Items) == 0, fmt.Sprint(names(pods.Items))
	})
	deleteImage(t, image, digest)
	if err := suite.SetNamespace(suite.Context(t), sys.connect(t), image); err != nil {
		t.Fatal(err)
	}
}

// deleteImage deletes an image from its registry.
func deleteImage(t *testing.T, image, digest string) {
	t.Helper()
	tag, err := name.NewTag(image, name.Insecure)
	if err == nil {
		err = remote.Delete(tag.Context().Digest(digest), remote.WithContext(suite.Context(t)))
	}
	if err != nil {
		t.Fatalf("delete %s: %v", image, err)
	}
}

// explainPrepulls prints what Kubernetes reports about pre-pull pods if the test fails.
func (sys *system) explainPrepulls(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		events, err := s.Client.CoreV1().Events(sys.functions).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			t.Log(err)
			return
		}
		for _, e := range events.Items {
			if strings.HasPrefix(e.InvolvedObject.Name, "prepull-") {
				t.Log(e.FirstTimestamp, e.InvolvedObject.FieldPath, e.Reason, e.Message)
			}
		}
	})
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
