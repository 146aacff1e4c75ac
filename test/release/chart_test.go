// SPDX-License-Identifier: Apache-2.0

//go:build helm

package release_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/build/images/chart"
	"github.com/krm-function-runner/function-runner/build/images/release"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// overlays builds the objects of all overlays, each as a text of YAML documents.
func overlays(t *testing.T) map[string][]byte {
	t.Helper()
	dirs, err := filepath.Glob("../../deploy/overlays/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("there are no overlays (%v)", err)
	}
	built := map[string][]byte{}
	for _, dir := range dirs {
		objects, err := manifests.Build(dir)
		if err != nil {
			t.Fatal(err)
		}
		built[filepath.Base(dir)] = bytes.Join(objects, []byte("---\n"))
	}
	return built
}

// write writes the chart of this directory's manifests.
func write(t *testing.T, overlays map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), chart.Name)
	if err := chart.Write(dir, version, release.Home, overlays); err != nil {
		t.Fatal(err)
	}
	return dir
}

// template renders the chart with Helm.
func template(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"template", "fnr", dir, "--kube-version", "1.36.0"}, args...)
	command := exec.CommandContext(t.Context(), "helm", args...)
	var messages strings.Builder
	command.Stderr = &messages
	command.Env = append(command.Environ(), "HOME="+t.TempDir())
	out, err := command.Output()
	return string(out) + messages.String(), err
}

// objects decodes a text of YAML documents, by kind, namespace and name.
func objects(t *testing.T, text string) map[string]any {
	t.Helper()
	found := map[string]any{}
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if object == nil {
			continue
		}
		about, _ := object["metadata"].(map[string]any)
		key := strings.Join([]string{str(object["kind"]), str(about["namespace"]), str(about["name"])}, " ")
		if found[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		found[key] = object
	}
	return found
}

// str returns a text of an object, or none.
func str(value any) string {
	text, _ := value.(string)
	return text
}

// TestChartGivesTheObjectsOfOverlays renders the chart with each overlay, and compares what comes out with what
// kustomize builds.
func TestChartGivesTheObjectsOfOverlays(t *testing.T) {
	built := overlays(t)
	dir := write(t, built)
	for name, want := range built {
		got, err := template(t, dir, "--set", "overlay="+name)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, got)
		}
		if diff := cmp.Diff(objects(t, string(want)), objects(t, got)); diff != "" {
			t.Errorf("%s (-kustomize, +helm):\n%s", name, diff)
		}
		moved := strings.ReplaceAll(string(want), release.Home+"/", "registry.example/fnr/")
		if got, err = template(t, dir, "--set", "overlay="+name, "--set", "registry=registry.example/fnr"); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, got)
		}
		if diff := cmp.Diff(objects(t, moved), objects(t, got)); diff != "" {
			t.Errorf("%s in another registry (-kustomize, +helm):\n%s", name, diff)
		}
	}
}

// TestChartHasSettings adds a setting to a Deployment, and changes another one.
func TestChartHasSettings(t *testing.T) {
	built := overlays(t)
	got, err := template(t, write(t, built), "--set", "overlay=porch",
		"--set-string", "settings.function-runner.FNR_TELEMETRY_LOG_VERBOSITY=4",
		"--set", "settings.function-runner.FNR_SERVE_DRAIN_DELAY=7s")
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	want, changed := objects(t, string(built["porch"])), objects(t, got)
	const name = "Deployment porch-system function-runner"
	before, after := variables(t, want[name]), variables(t, changed[name])
	before["FNR_TELEMETRY_LOG_VERBOSITY"], before["FNR_SERVE_DRAIN_DELAY"] = "4", "7s"
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the variables (-want, +got):\n%s", diff)
	}
	delete(want, name)
	delete(changed, name)
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("other objects (-want, +got):\n%s", diff)
	}
}

// variables returns the environment of the container in a Deployment.
func variables(t *testing.T, deployment any) map[string]string {
	t.Helper()
	var typed struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Env []struct{ Name, Value string }
					}
				}
			}
		}
	}
	content, err := yaml.Marshal(deployment)
	if err == nil {
		err = yaml.Unmarshal(content, &typed)
	}
	if err != nil || len(typed.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("not a Deployment of one container (%v): %v", err, deployment)
	}
	found := map[string]string{}
	for _, variable := range typed.Spec.Template.Spec.Containers[0].Env {
		found[variable.Name] = variable.Value
	}
	return found
}

// TestChartRejectsWrongValues: an error names what is wrong.
func TestChartRejectsWrongValues(t *testing.T) {
	dir := write(t, overlays(t))
	for _, tc := range []struct{ set, want, reason string }{
		{"overlay=prod", `overlay is "prod"`, "there is none of that name"},
		{"settings.gatway.A=b", `settings has "gatway"`, "a setting would be lost without a word"},
	} {
		if out, err := template(t, dir, "--set", tc.set); err == nil || !strings.Contains(out, tc.want) {
			t.Errorf("%s: %v, want an error with %q: %s\n%s", tc.set, err, tc.want, tc.reason, out)
		}
	}
}
