// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// porchs returns Porch's objects, from its manifests and documentation.
func porchs(t *testing.T, name string) []runtime.Object {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "test/e2e/deploy/testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var found []runtime.Object
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		object, err := manifests.Decode([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, object)
	}
	return found
}

// runner returns the Deployment of the function runner among objects.
func runner(t *testing.T, objects []runtime.Object) *appsv1.Deployment {
	t.Helper()
	for _, d := range of[*appsv1.Deployment](objects) {
		if d.Name == "function-runner" {
			return d
		}
	}
	t.Fatal("there is no Deployment function-runner")
	return nil
}

// applied returns a Deployment after `kubectl apply` of another version of it: kubectl removes what
// was applied last time, keeps the rest, and adds what is new.
func applied(t *testing.T, live, last, next *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	var documents [3][]byte
	for i, d := range []*appsv1.Deployment{last, next, live} {
		var err error
		if documents[i], err = yaml.Marshal(d); err == nil {
			documents[i], err = yaml.YAMLToJSON(documents[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(documents[0], documents[1], documents[2], meta, true)
	if err != nil {
		t.Fatal(err)
	}
	content, err := strategicpatch.StrategicMergePatch(documents[2], patch, appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	result := new(appsv1.Deployment)
	if err := yaml.UnmarshalStrict(content, result); err != nil {
		t.Fatal(err)
	}
	return result
}

// TestPorchsDeploymentIsReplacedAndGivenBack applies the overlay over Porch's Deployment, and
// Porch's over ours: nothing of one is left in the other, such as a second handler in a probe,
// which the API server would reject.
func TestPorchsDeploymentIsReplacedAndGivenBack(t *testing.T) {
	const overlay = "overlays/porch"
	ours := runner(t, objects(t, overlay, filepath.Join(root, "deploy", overlay)))
	for _, name := range []string{"porch-manifests", "porch-templating", "porch-configuration"} {
		t.Run(name, func(t *testing.T) {
			theirs := runner(t, porchs(t, name))
			there := applied(t, theirs, theirs, ours)
			if diff := gocmp.Diff(ours.Spec, there.Spec); diff != "" {
				t.Errorf("over Porch's, ours becomes (-want, +got):\n%s", diff)
			}
			back := applied(t, there, ours, theirs)
			if diff := gocmp.Diff(theirs.Spec, back.Spec); diff != "" {
				t.Errorf("over ours, Porch's becomes (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestSwitchOverPatch patches Porch's Deployments as in docs/replacing-porch.md: names of images
// change, and the grace period becomes that of our own manifests, which an evaluation in flight may
// need. Nothing else changes.
func TestSwitchOverPatch(t *testing.T) {
	_, rest, found := strings.Cut(string(mustRead(t, filepath.Join(root, "docs/replacing-porch.md"))),
		"patch deployment function-runner --patch '")
	patch, _, _ := strings.Cut(rest, "'")
	content, err := yaml.YAMLToJSON([]byte(patch))
	if !found || err != nil {
		t.Fatalf("the document shows no patch (%v): %s", err, patch)
	}
	ours := runner(t, objects(t, "base/function-runner", deploy+"/base/function-runner"))
	for _, name := range []string{"porch-manifests", "porch-templating", "porch-configuration"} {
		t.Run(name, func(t *testing.T) {
			want := runner(t, porchs(t, name))
			live, err := yaml.Marshal(want)
			if err == nil {
				live, err = yaml.YAMLToJSON(live)
			}
			if err == nil {
				live, err = strategicpatch.StrategicMergePatch(live, content, appsv1.Deployment{})
			}
			got := new(appsv1.Deployment)
			if err != nil || yaml.UnmarshalStrict(live, got) != nil {
				t.Fatalf("patch: %v\n%s", err, live)
			}
			pod := &want.Spec.Template.Spec
			pod.TerminationGracePeriodSeconds = ours.Spec.Template.Spec.TerminationGracePeriodSeconds
			pod.Containers[0].Image = "registry.example/fnr/function-runner:v1"
			pod.Containers[0].Env[0].Value = "registry.example/fnr/wrapper-server:v1"
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("the patch does something else (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsOursCanBeFoundBesidePorch checks that the way back in docs/replacing-porch.md finds
// everything of ours by its kind and a label.
func TestWhatIsOursCanBeFoundBesidePorch(t *testing.T) {
	for _, overlay := range porchOverlays {
		overlay = "overlays/" + overlay
		checkWayBack(t, overlay, objects(t, overlay, filepath.Join(deploy, overlay)))
	}
}

// porchOverlays are the overlays for clusters with Porch.
var porchOverlays = []string{"porch", "porch-main", "porch-microservices"}

// checkWayBack checks that the way back in docs/replacing-porch.md deletes all objects of an overlay.
func checkWayBack(t *testing.T, overlay string, objects []runtime.Object) {
	t.Helper()
	_, rest, _ := strings.Cut(string(mustRead(t, filepath.Join(root, "docs/replacing-porch.md"))),
		"delete -l app.kubernetes.io/part-of=function-runner \\\n")
	line, _, _ := strings.Cut(rest, "\n")
	kinds := strings.Split(strings.TrimSpace(line), ",")
	for _, object := range objects {
		meta := object.(metav1.Object)
		if meta.GetLabels()["app.kubernetes.io/part-of"] != "function-runner" {
			t.Errorf("%s: %T %s has no label of its owner", overlay, object, meta.GetName())
		}
		kind := reflect.TypeOf(object).Elem().Name()
		if !slices.Contains(kinds, strings.ToLower(kind)) {
			t.Errorf("%s: the document does not delete objects of the kind %s", overlay, kind)
		}
	}
}

// TestOverlayBesidePorch builds the overlay that deploy/README.md shows beside Porch, on each overlay for Porch and
// with a template of function pods. Programs get the sizes of the overlay production, and the way back finds all
// objects.
func TestOverlayBesidePorch(t *testing.T) {
	_, section, _ := strings.Cut(string(mustRead(t, filepath.Join(deploy, "README.md"))), "\n## Beside Porch\n")
	_, block, _ := strings.Cut(section, "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	const base, components = "resources: [../porch]", "\ncomponents:\n"
	if !strings.Contains(block, base) || !strings.Contains(block, components) {
		t.Fatalf("the overlay has no line %q or no list of components:\n%s", base, block)
	}
	for _, overlay := range porchOverlays {
		t.Run(overlay, func(t *testing.T) {
			content := strings.NewReplacer(base, "resources: [../"+overlay+"]",
				components, components+"  - ../../components/pod-template\n").Replace(block)
			all := objects(t, t.Name(), manifests.OwnOverlay(t, root, content))
			checkWayBack(t, overlay, all)
			checked := 0
			for _, d := range of[*appsv1.Deployment](all) {
				if d.Name != "gateway" && d.Name != "function-runner" {
					continue
				}
				checked++
				c := d.Spec.Template.Spec.Containers[0]
				if limit := c.Resources.Limits.Memory().String(); limit != "4Gi" {
					t.Errorf("%s has a memory limit of %s, want the limit of production", d.Name, limit)
				}
				if d.Name == "function-runner" && !slices.Contains(c.Args, "--pod-ttl=1h") {
					t.Errorf("the arguments are %q, and lack the argument of the overlay", c.Args)
				}
			}
			if checked != 1 {
				t.Errorf("%d programs serve callers, want 1", checked)
			}
		})
	}
}

// mainRights are those of the Role of Porch's main branch in the namespace of function pods, by
// resource, with its API group.
var mainRights = map[string]string{
	"pods":                                 "create delete patch get watch list",
	"services":                             "create delete get watch list",
	"endpoints":                            "create delete get watch list",
	"secrets":                              "create delete update get",
	"podtemplates":                         "get list watch create update patch",
	"functionconfigs.config.porch.kpt.dev": "get list watch patch",
	"functionconfigs/status.config.porch.kpt.dev": "get update patch",
	"servicetemplates.config.porch.kpt.dev":       "get list watch create update patch",
}

// TestTheRoleOfPorchsMainBranchSuffices checks that the overlay grants nothing that the Role of
// Porch's own function runner does not: with that one, no other is needed.
func TestTheRoleOfPorchsMainBranchSuffices(t *testing.T) {
	const overlay = "overlays/porch-main"
	all := rights(t, objects(t, overlay, filepath.Join(root, "deploy", overlay)))["porch-system/porch-fn-runner"]
	if len(all) < 15 {
		t.Errorf("rights are %q: are they granted in another way?", all)
	}
	for _, right := range all {
		parts := strings.Fields(right)
		granted, known := mainRights[parts[1]]
		if resource, _, named := strings.Cut(parts[1], "/"); !known && named {
			granted = mainRights[resource] // of all names
		}
		if parts[0] != "porch-fn-system" || !slices.Contains(strings.Fields(granted), parts[2]) {
			t.Errorf("the Role of main does not grant %q", right)
		}
	}
}
