// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// TestInstallOfTheREADME checks that its commands belong together: what the last one deploys,
// after the second one on a copy, is what the first one pushes.
func TestInstallOfTheREADME(t *testing.T) {
	_, text, _ := strings.Cut(string(mustRead(t, filepath.Join(root, "README.md"))), "\n## Install on a cluster\n")
	_, text, _ = strings.Cut(text, "\nFrom a clone")
	_, text, _ = strings.Cut(text, "```\n")
	text, _, _ = strings.Cut(text, "```")
	var commands [][]string
	for line := range strings.Lines(text) {
		command, _, _ := strings.Cut(line, "#")
		commands = append(commands, strings.Fields(command))
	}
	if len(commands) != 4 {
		t.Fatalf("these are not four commands:\n%s", text)
	}
	images, values, create, apply := commands[0], commands[1], commands[2], commands[3]
	if want := "deploy/" + manifests.Namespaces; create[len(create)-1] != want {
		t.Errorf("%q does not create the namespaces with %s", create, want)
	}
	if !slices.Equal(images[:2], []string{"make", "images"}) || !slices.Equal(values[:2], []string{"make", "manifests"}) ||
		!slices.Equal(images[2:], values[2:]) {
		t.Fatalf("what is pushed is not what is written: %q, %q", images, values)
	}
	repo, tag := strings.TrimPrefix(values[2], "REPO="), strings.TrimPrefix(values[3], "TAG=")
	made := manifests.Copy(t, deploy)
	makeManifests(t, made, values[2:]...)
	overlay := filepath.Join(made, strings.TrimPrefix(apply[len(apply)-1], "deploy/"))
	for _, d := range of[*appsv1.Deployment](objects(t, t.Name(), overlay)) {
		c := d.Spec.Template.Spec.Containers[0]
		if want := repo + "/" + d.Name + ":" + tag; c.Image != want {
			t.Errorf("%s has image %s, want %s", d.Name, c.Image, want)
		}
		if image, want := variable(c, "WRAPPER_SERVER_IMAGE"), repo+"/wrapper-server:"+tag; image != "" && image != want {
			t.Errorf("%s gives pods %s, want %s", d.Name, image, want)
		}
	}
}

// TestExamplesOfTheREADME builds the overlays of the documents, each beside deploy/'s own.
func TestExamplesOfTheREADME(t *testing.T) {
	for name, dir := range manifests.Documented(t, root) {
		t.Run(name, func(t *testing.T) { checkExample(t, dir) })
	}
}

// checkExample checks that an overlay is a system, and that an overlay with image names replaces
// all of ours.
func checkExample(t *testing.T, dir string) {
	t.Helper()
	all := objects(t, t.Name(), dir)
	deployments := of[*appsv1.Deployment](all)
	if len(deployments) == 0 {
		t.Error("nothing runs in it")
	}
	if !strings.Contains(string(mustRead(t, filepath.Join(dir, "kustomization.yaml"))), "\nimages:") {
		return
	}
	for _, d := range deployments {
		c := d.Spec.Template.Spec.Containers[0]
		for _, image := range []string{c.Image, variable(c, "WRAPPER_SERVER_IMAGE")} {
			if strings.Contains(image, oursRegistry) {
				t.Errorf("%s has image %s", d.Name, image)
			}
		}
	}
}
