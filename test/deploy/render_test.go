// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// Repositories of images: the default, and a user's own.
const (
	oursRegistry = "ghcr.io/krm-function-runner"
	ownRegistry  = "registry.example:5000/fnr"
	ownTag       = "v1.2.3"
)

// TestKptDoesWhatMakeDoes renders a copy of the package with changed setters by the function that
// its Kptfile names, and changes another copy by `make manifests`: the results are the same.
func TestKptDoesWhatMakeDoes(t *testing.T) {
	rendered, made := manifests.Copy(t, deploy), manifests.Copy(t, deploy)
	render(t, rendered)
	makeManifests(t, made, "REPO="+ownRegistry, "TAG="+ownTag)

	want, got := documents(t, made), documents(t, rendered)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("make manifests and kpt differ (-make, +kpt):\n%s", diff)
	}
	if content := string(mustMarshal(t, got)); strings.Contains(content, oursRegistry) ||
		strings.Contains(content, "latest") {
		t.Errorf("not everything was set:\n%s", gocmp.Diff(documents(t, filepath.Join(root, "deploy")), got))
	}
	if want, got := setterLines(t, made), setterLines(t, rendered); !gocmp.Equal(want, got) {
		t.Errorf("what can be set again differs (-make, +kpt):\n%s", gocmp.Diff(want, got))
	}
}

// TestTagsAreNoNumbers has a tag that kustomize would read as a number.
func TestTagsAreNoNumbers(t *testing.T) {
	for _, tag := range []string{"20261125", "1.10"} {
		cmd := exec.CommandContext(t.Context(), "make", "-f", root+"/build/images/images.mk", "manifests",
			"DEPLOY="+t.TempDir(), "REPO="+ownRegistry, "TAG="+tag)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "such as v"+tag) {
			t.Errorf("make manifests TAG=%s: %v\n%s", tag, err, out)
		}
	}
}

// TestAPIServerCanBeNarrowed renders a copy of the package in which a user has set the address of the
// API server: its ports are permitted to that address only.
func TestAPIServerCanBeNarrowed(t *testing.T) {
	const own = "10.20.30.40/32"
	dir := manifests.Copy(t, deploy)
	set(t, filepath.Join(dir, "setters.yaml"), "api-server-cidr", own)
	render(t, dir)
	policies := 0
	eachManifest(t, dir, func(name string, content []byte) {
		var policy networkingv1.NetworkPolicy
		if yaml.Unmarshal(content, &policy) != nil || policy.Kind != "NetworkPolicy" {
			return
		}
		for _, rule := range policy.Spec.Egress {
			if !slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntVal == 6443 }) {
				continue
			}
			policies++
			if len(rule.To) != 1 || rule.To[0].IPBlock == nil || rule.To[0].IPBlock.CIDR != own {
				t.Errorf("%s: policy %s permits the API server's ports to %v, want %s", name, policy.Name, rule.To, own)
			}
		}
	})
	if policies == 0 {
		t.Error("no policy permits the API server's ports")
	}
}

// makeManifests runs `make manifests` on a copy of deploy/.
func makeManifests(t *testing.T, dir string, variables ...string) {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(root, "build/images/images.mk"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, nil, "make", append([]string{"--no-print-directory", "-C", filepath.Dir(dir), "-f", file, "manifests"},
		variables...)...)
}

// run runs a program and returns its output.
func run(t *testing.T, input []byte, name string, args ...string) []byte {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out, log.Bytes())
	}
	return out
}

// pipeline is the part of a Kptfile about functions.
type pipeline struct {
	Pipeline struct {
		Mutators []struct{ Image, ConfigPath string }
	}
}

// render changes the setters and runs the package's only function as kpt does.
func render(t *testing.T, dir string) {
	t.Helper()
	var kptfile pipeline
	if content, err := os.ReadFile(filepath.Join(dir, "Kptfile")); err != nil ||
		yaml.Unmarshal(content, &kptfile) != nil || len(kptfile.Pipeline.Mutators) != 1 {
		t.Fatalf("the Kptfile must name one function: %v\n%s", err, content)
	}
	function := kptfile.Pipeline.Mutators[0]
	bundled, err := os.ReadFile(filepath.Join(root, "functions/config.yaml"))
	if err != nil || !bytes.Contains(bundled, []byte("- "+function.Image+"\n")) {
		t.Fatalf("%s is not one of the functions built here: %v", function.Image, err)
	}
	setters := filepath.Join(dir, function.ConfigPath)
	set(t, setters, "registry", ownRegistry)
	set(t, setters, "tag", ownTag)

	config := kyaml.MustParse(string(mustRead(t, setters)))
	var list, result bytes.Buffer
	files := &kio.LocalPackageReadWriter{
		PackagePath: dir, PackageFileName: "Kptfile", MatchFilesGlob: append([]string{"Kptfile"}, kio.DefaultMatch...),
		PreserveSeqIndent: true, WrapBareSeqNode: true,
	}
	input := kio.ByteWriter{
		Writer: &list, KeepReaderAnnotations: true, FunctionConfig: config,
		WrappingKind: kio.ResourceListKind, WrappingAPIVersion: kio.ResourceListAPIVersion,
	}
	err = kio.Pipeline{
		Inputs: []kio.Reader{files}, Filters: []kio.Filter{kio.FilterFunc(resources)},
		Outputs: []kio.Writer{input},
	}.Execute()
	if err != nil {
		t.Fatal(err)
	}
	program := gobuild.Program(t, filepath.Join(root, "functions/apply-setters"),
		"github.com/kptdev/krm-functions-catalog/functions/go/apply-setters")
	result.Write(run(t, list.Bytes(), program))
	changed := &kio.ByteReader{Reader: &result, PreserveSeqIndent: true, WrapBareSeqNode: true}
	if err := (kio.Pipeline{Inputs: []kio.Reader{changed}, Outputs: []kio.Writer{files}}).Execute(); err != nil {
		t.Fatal(err)
	}
}

// resources rejects files that are not resources, as kpt does.
func resources(nodes []*kyaml.RNode) ([]*kyaml.RNode, error) {
	for _, node := range nodes {
		if node.GetApiVersion() == "" || node.GetKind() == "" {
			return nil, fmt.Errorf("%s is not a resource, and .krmignore does not name it",
				node.GetAnnotations()[kioutil.PathAnnotation])
		}
	}
	return nodes, nil
}

// set changes a setter as a user would.
func set(t *testing.T, file, name, value string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(string(mustRead(t, file))) {
		if strings.HasPrefix(line, "  "+name+": ") {
			line = "  " + name + ": " + value + "\n"
		}
		lines = append(lines, line)
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustMarshal(t *testing.T, value any) []byte {
	t.Helper()
	content, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// eachManifest calls f with the content of each YAML file below dir.
func eachManifest(t *testing.T, dir string, f func(name string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && path == filepath.Join(dir, "chart") {
			return fs.SkipDir // Helm's templates, which test/release compares with the overlays
		}
		if err != nil || entry.IsDir() || (filepath.Ext(path) != ".yaml" && entry.Name() != "Kptfile") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		f(name, mustRead(t, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// documents returns the content of the files below dir, by file.
func documents(t *testing.T, dir string) map[string][]any {
	t.Helper()
	found := map[string][]any{}
	eachManifest(t, dir, func(name string, content []byte) {
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var value any
			if err := yaml.Unmarshal([]byte(document), &value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			found[name] = append(found[name], value)
		}
	})
	return found
}

// setterLines returns the lines below dir that can be set, by file.
func setterLines(t *testing.T, dir string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	eachManifest(t, dir, func(name string, content []byte) {
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, " # kpt-set: ") {
				found[name] = append(found[name], strings.TrimSpace(line))
			}
		}
	})
	return found
}
