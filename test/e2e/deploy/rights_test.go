// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// right is a verb on a kind of objects.
type right struct{ namespace, resource, verb string }

// managing describes how pods are managed in a mode.
type managing struct {
	mode       string
	deployment string // of the program that manages pods
	account    string // of that program
	prefix     string // of its variables
	components []string
	// ask makes one of all replicas provide a function's pod.
	ask func(ctx context.Context, t *testing.T, replica *corev1.Pod, all []corev1.Pod) error
}

// TestRightsAreMinimal runs everything that managing pods ever requires, in both modes, and
// compares granted with used rights: a missing right leads to a refused request, and a superfluous
// one is not used. (e2e/registries does the same for Secrets.)
func TestRightsAreMinimal(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	for _, m := range []managing{
		{"microservices", "pod-manager", "pod-manager", "FNR_", []string{"pod-template"}, lease},
		{
			"function-runner", "function-runner", "porch-fn-runner", "FNR_",
			[]string{"pod-template", "mutual-tls-pods"},
			evaluate,
		},
	} {
		t.Run(m.mode, func(t *testing.T) {
			t.Parallel()
			m.usesItsRights(t, aside("rights-"+m.mode))
		})
	}
}

func (m managing) usesItsRights(t *testing.T, at place) {
	dir := manifests.Combine(t, filepath.Join(root, "deploy"), "base/"+m.mode, m.components...)
	objects := s.OnTheBed(t, suite.Build(t, dir))
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == m.deployment {
			// Pods are created and deleted within the test.
			suite.SetVariable(t, o, m.prefix+"TTL", "15s")
			suite.SetVariable(t, o, m.prefix+"SCAN_INTERVAL", "1s")
		}
	}
	at.install(t, objects)
	at.evaluates(t, inPod(t))
	m.collide(t, at)
	at.restart(t, m.deployment) // watches appear in the audit log when they end

	granted := at.granted(t, objects)
	var missing []right
	for ctx := suite.Context(t); ; <-time.After(500 * time.Millisecond) {
		at.evaluates(t, inPod(t)) // extends the life of its pod; the others expire
		if missing = m.unused(t, at, granted); len(missing) == 0 || ctx.Err() != nil {
			break
		}
	}
	if len(missing) > 0 {
		t.Errorf("these rights are granted but not used: %+v", missing)
	}
}

// granted returns the rights that Roles grant.
func (p place) granted(t *testing.T, objects []*unstructured.Unstructured) []right {
	t.Helper()
	var rights []right
	for _, o := range p.objects(t, suite.Current, objects) {
		if o.GetKind() != "Role" {
			continue
		}
		var role rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, right{role.Namespace, resource, verb})
				}
			}
		}
	}
	if len(rights) == 0 {
		t.Fatal("no Role grants anything")
	}
	return rights
}

// unused returns the rights that no replica has used. A refused request is an error.
func (m managing) unused(t *testing.T, at place, granted []right) []right {
	t.Helper()
	used := map[right]bool{}
	for _, r := range s.Requests(t, at.system, m.account, time.Time{}) {
		used[right{r.Object.Namespace, r.Object.Resource, r.Verb}] = true
		if r.Response.Code == http.StatusForbidden {
			t.Fatalf("a right is missing: %s %s", r.Verb, r.URI)
		}
	}
	var unused []right
	for _, g := range granted {
		if !used[g] {
			unused = append(unused, g)
		}
	}
	return unused
}
