// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// foreignKinds are the kinds of the examples that other projects define: their fields are not checked here.
var foreignKinds = map[string]bool{
	"ClusterPolicy.kyverno.io/v1":                    true,
	"ClusterImagePolicy.policy.sigstore.dev/v1beta1": true,
}

// eachExample calls f with each object of docs/examples. Fields that Kubernetes does not know are errors.
func eachExample(t *testing.T, f func(file string, object any)) {
	t.Helper()
	eachManifest(t, filepath.Join(root, "docs/examples"), func(file string, content []byte) {
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var meta metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			group, version, _ := strings.Cut(meta.APIVersion, "/")
			if foreignKinds[meta.Kind+"."+group+"/"+version] {
				continue
			}
			object, err := manifests.Decode([]byte(document))
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			f(file, object)
		}
	})
}

// TestOpenShiftAssignsUsers: restricted-v2 refuses pods that set their own.
func TestOpenShiftAssignsUsers(t *testing.T) {
	objects, err := manifests.Build(filepath.Join(root, "deploy/overlays/openshift"))
	if err != nil {
		t.Fatal(err)
	}
	all := string(bytes.Join(objects, []byte("\n---\n")))
	if strings.Contains(all, "runAsUser") || strings.Contains(all, "runAsGroup") || strings.Contains(all, "fsGroup") {
		t.Error("a pod of the overlay sets its user or group")
	}
	if !strings.Contains(all, "annotations: {openshift.io/required-scc: restricted-v2}") {
		t.Error("the template of function pods does not leave users to OpenShift")
	}
}

func TestExamplesAreValid(t *testing.T) {
	files := 0
	eachExample(t, func(_ string, object any) {
		files++
		if d, ok := object.(*appsv1.DaemonSet); ok {
			restricted(t, &metav1.ObjectMeta{Name: d.Name, Labels: d.Spec.Template.Labels}, &d.Spec.Template.Spec)
			for _, c := range d.Spec.Template.Spec.InitContainers[1:] {
				if len(c.Command) != 2 || c.Command[0] != "/tools/wrapper-server" || c.Command[1] != "--help" {
					t.Errorf("container %s runs %v: not each image has a shell", c.Name, c.Command)
				}
			}
		}
	})
	if files == 0 {
		t.Error("there are no examples")
	}
}
