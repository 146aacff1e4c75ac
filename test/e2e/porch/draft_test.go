// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porch_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// draft is a package revision in work, with the function pipeline that it has.
type draft struct {
	repository, name     string
	mutators, validators []function
	// limited means that the package meets its policy.
	limited bool
}

// function is a function in the pipeline of a package.
type function struct{ image, config string }

// The images of functions that runners have as binaries.
const catalog = "ghcr.io/kptdev/krm-functions-catalog/"

// inPod returns the image of a function of the catalog under a name without a binary.
func inPod(t testing.TB, function string) string {
	t.Helper()
	return cmp.Or(pods, s.Registry(t, "open").Host+"/krm-functions-catalog") + "/" + function
}

// setNamespace sets the namespace of all objects.
func setNamespace(image string) function { return function{image, "configMap: {namespace: shop}"} }

// applySetters sets the number of replicas.
func applySetters(image string) function { return function{image, `configMap: {replicas: "3"}`} }

// checkPolicy fails if a container has no memory limit.
func checkPolicy(image string) function { return function{image, "configPath: policy.yaml"} }

// violation is the message of the policy in testdata.
const violation = "container cart has no memory limit"

// exists is Porch's answer to an attempt after one that created the package and failed all the same:
// no other test has a package of that name.
const exists = "already exists in repo"

// newDraft creates an empty package.
func newDraft(t testing.TB, repository, name string) *draft {
	t.Helper()
	answer, err := try(t, "init", "--repository="+repository, "--workspace=v1", name)
	if err != nil && !strings.Contains(answer, exists) {
		t.Errorf("init %s in %s: %v\n%s", name, repository, err, answer)
	}
	return &draft{repository: repository, name: name}
}

func (d *draft) revision() string { return d.repository + "." + d.name + ".v1" }

// conflict is Kubernetes' answer to a change of an old version. Porch itself writes a revision in
// the seconds after its creation.
const conflict = "the object has been modified"

// push changes the package to its current content, as often as it conflicts with other changes of
// it, and returns what Porch answers.
func (d *draft) push(t testing.TB) (answer string, err error) {
	t.Helper()
	for ctx := suite.Context(t); ; {
		if answer, err = d.pushOnce(t); err == nil || ctx.Err() != nil || !strings.Contains(answer, conflict) {
			return answer, err
		}
		t.Logf("the push of %s is tried again: %s", d.revision(), answer)
	}
}

func (d *draft) pushOnce(t testing.TB) (string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "package")
	porchctl(t, "pull", d.revision(), dir)
	for name, content := range d.files(t) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return try(t, "push", d.revision(), dir)
}

// render changes the package, which all functions accept.
func (d *draft) render(t testing.TB) {
	t.Helper()
	if out, err := d.push(t); err != nil {
		t.Fatalf("push %s: %v\n%s", d.revision(), err, out)
	}
}

func (d *draft) files(t testing.TB) map[string]string {
	t.Helper()
	found := map[string]string{"Kptfile": d.kptfile()}
	for _, name := range []string{"cart.yaml", "policy.yaml"} {
		content, err := os.ReadFile(filepath.Join("testdata/package", name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(content)
	}
	if d.limited {
		found["cart.yaml"] += "          resources: {limits: {memory: 64Mi}}\n"
	}
	return found
}

func (d *draft) kptfile() string {
	var file strings.Builder
	fmt.Fprintf(&file, "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: %s\npipeline:\n", d.name)
	for kind, functions := range map[string][]function{"mutators": d.mutators, "validators": d.validators} {
		if len(functions) == 0 {
			continue
		}
		fmt.Fprintf(&file, "  %s:\n", kind)
		for _, f := range functions {
			fmt.Fprintf(&file, "    - image: %s\n      %s\n", f.image, f.config)
		}
	}
	return file.String()
}

// rendered returns what is missing in a package that set-namespace and apply-setters have changed.
func rendered(file string) error {
	for _, line := range []string{"  namespace: shop\n", "  replicas: 3 "} {
		if !strings.Contains(file, line) {
			return fmt.Errorf("there is no %q in\n%s", line, file)
		}
	}
	return nil
}
