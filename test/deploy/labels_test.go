// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recommended are the labels that each object has.
var recommended = []string{"name", "instance", "version", "component", "part-of"}

// TestObjectsHaveRecommendedLabels checks the labels of all objects of overlays, and that selectors have only the label
// app: a selector cannot be changed.
func TestObjectsHaveRecommendedLabels(t *testing.T) {
	overlays, err := os.ReadDir(filepath.Join(deploy, "overlays"))
	if err != nil || len(overlays) < 9 {
		t.Fatalf("%d overlays: %v", len(overlays), err)
	}
	for _, overlay := range overlays {
		if overlay.Name() == "namespaces" {
			continue // they are Porch's
		}
		name := "overlays/" + overlay.Name()
		for _, object := range objects(t, name, filepath.Join(deploy, name)) {
			meta := object.(metav1.Object)
			checkLabels(t, name+": "+meta.GetName(), meta.GetLabels())
			d, ok := object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			checkLabels(t, name+": pods of "+d.Name, d.Spec.Template.Labels)
			if diff := cmp.Diff([]string{"app"}, slices.Collect(maps.Keys(d.Spec.Selector.MatchLabels))); diff != "" {
				t.Errorf("%s: selector of %s (-want +got):\n%s", name, d.Name, diff)
			}
		}
	}
}

// checkLabels checks that an object has the recommended labels.
func checkLabels(t *testing.T, object string, labels map[string]string) {
	t.Helper()
	missing := slices.DeleteFunc(slices.Clone(recommended), func(l string) bool {
		return labels["app.kubernetes.io/"+l] != ""
	})
	if len(missing) > 0 {
		t.Errorf("%s has no label %s", object, strings.Join(missing, ", "))
	}
}
