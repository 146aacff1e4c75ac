// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// porchVariable is the environment variable with the path of Porch's server, beside which are its
// manifests.
const porchVariable = "FNR_PORCH"

// beside is a place where Porch runs.
type beside struct {
	place
	porch []*unstructured.Unstructured
}

// published returns the namespaces and Deployments of Porch's published manifests, with all that is
// in their files. Of its server, only what the API server admits or refuses is as published: another
// program runs in its container, since it could serve a cluster's API only once (see e2e/porch).
func published(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	server := os.Getenv(porchVariable)
	if server == "" {
		t.Fatalf("set %s to the path of Porch's server, as `make e2e` does: `cluster tool porch` builds and prints it",
			porchVariable)
	}
	var objects []*unstructured.Unstructured
	for _, name := range []string{"1-namespace", "2-function-runner", "3-porch-server"} {
		content, err := os.ReadFile(filepath.Join(filepath.Dir(server), "manifests", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(insteadOfPorchs(t, string(content)), "\n---\n") {
			objects = append(objects, suite.Decode(t, document))
		}
	}
	for _, o := range objects {
		switch {
		case o.GetKind() == "Deployment" && o.GetName() == "porch-server":
			suite.ChangeContainer(t, o, standIn)
		case o.GetKind() == "ConfigMap": // its functions are in registries that the bed does not reach
			o.Object["data"] = map[string]any{"pod-cache-config.yaml": "{}"}
		}
	}
	return objects
}

// standIn has the tests' own tool run in a container.
func standIn(container map[string]any) {
	container["image"] = s.Toolbox
	container["args"] = []any{"serve", ":4443", "Porch"}
	for _, field := range []string{"livenessProbe", "readinessProbe", "resources"} {
		delete(container, field)
	}
}

// restricted returns Porch as a careful user has it: its pods are restricted, and its namespaces
// admit no others.
func restricted(t *testing.T, porch []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	for _, o := range porch {
		switch o.GetKind() {
		case "Namespace":
			o.SetLabels(map[string]string{api.EnforceLevelLabel: string(api.LevelRestricted)})
		case "Deployment":
			suite.ChangeContainer(t, o, func(container map[string]any) {
				container["securityContext"] = map[string]any{
					"runAsNonRoot": true, "runAsUser": int64(65532), "allowPrivilegeEscalation": false,
					"capabilities":   map[string]any{"drop": []any{"ALL"}},
					"seccompProfile": map[string]any{"type": "RuntimeDefault"},
				}
			})
		}
	}
	return porch
}

// apply applies objects as `kubectl apply -k` does, and waits for their Deployments.
func (b beside) apply(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	objects = b.objects(t, suite.Current, objects)
	suite.Kubectl(t, documents(t, objects), "apply", "-f", "-")
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			s.AwaitRollout(suite.Context(t), t, b.system, o.GetName())
		}
	}
}

// wayBack runs the commands of docs/replacing-porch.md that delete what is ours.
func (b beside) wayBack(t *testing.T) {
	t.Helper()
	const first, last = "for namespace in porch-system porch-fn-system; do\n", "done\n"
	_, rest, _ := strings.Cut(document(t, "docs/replacing-porch.md"), first)
	loop, _, found := strings.Cut(rest, last)
	if !found {
		t.Fatal("the document deletes nothing")
	}
	b.run(t, first+loop+last)
}

// uninstall runs the commands of deploy/README.md: it deletes an overlay, and then what our programs
// created.
func (b beside) uninstall(t *testing.T, overlay []*unstructured.Unstructured) {
	t.Helper()
	suite.Kubectl(t, documents(t, b.objects(t, suite.Current, overlay)), "delete", "-f", "-")
	_, rest, _ := strings.Cut(document(t, "deploy/README.md"), "kubectl delete -k deploy/overlays/production\n")
	commands, _, found := strings.Cut(rest, "kubectl delete -k deploy/overlays/namespaces")
	if !found {
		t.Fatal("the document does not delete what our programs created")
	}
	b.run(t, commands)
}

// document returns a document of the repository.
func document(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// run runs documented commands, in these namespaces.
func (b beside) run(t *testing.T, commands string) {
	t.Helper()
	here := strings.NewReplacer(usual.system, b.system, usual.functions, b.functions)
	out, err := exec.CommandContext(suite.Context(t), "sh", "-ec", here.Replace(commands)).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// nothingIsLeft checks that no object of ours is there.
func (b beside) nothingIsLeft(t *testing.T) {
	t.Helper()
	const (
		kinds = "deployments,services,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets," +
			"horizontalpodautoscalers,configmaps,resourcequotas"
		ours = "app.kubernetes.io/part-of=function-runner"
	)
	for _, namespace := range []string{b.system, b.functions} {
		left := suite.Kubectl(t, "", "-n", namespace, "get", kinds, "-o", "name", "-l", ours)
		if left != "" {
			t.Errorf("in %s there are still\n%s", namespace, left)
		}
	}
}

// namespaces returns identity, labels and annotations of the namespaces.
func (b beside) namespaces(t *testing.T) string {
	t.Helper()
	return suite.Kubectl(t, "", "get", "namespace", b.system, b.functions, "-o",
		`jsonpath={range .items[*]}{.metadata.uid} {.metadata.labels} {.metadata.annotations}{"\n"}{end}`)
}

// documents returns objects as one file.
func documents(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	var all []string
	for _, o := range objects {
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(document))
	}
	return strings.Join(all, "---\n")
}
