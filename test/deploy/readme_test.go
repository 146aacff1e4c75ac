package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// block is a piece of YAML in a document.
var block = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestExamplesOfTheREADME builds the overlays that the documents show, each beside
// deploy/'s own.
func TestExamplesOfTheREADME(t *testing.T) {
	found := 0
	for _, file := range []string{"README.md", "deploy/README.md"} {
		for _, match := range block.FindAllStringSubmatch(string(mustRead(t, filepath.Join(root, file))), -1) {
			if !strings.Contains(match[1], "kind: Kustomization") {
				continue
			}
			found++
			t.Run(fmt.Sprintf("%s %d", file, found), func(t *testing.T) {
				overlay := filepath.Join(copied(t), "overlays/own")
				if err := os.Mkdir(overlay, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(match[1]), 0o600); err != nil {
					t.Fatal(err)
				}
				checkExample(t, match[1], overlay)
			})
		}
	}
	if found < 3 {
		t.Errorf("%d overlays are shown, want at least those for components, Porch and images", found)
	}
}

// checkExample checks that an overlay is a system, and that one which names images
// leaves none of ours.
func checkExample(t *testing.T, content, dir string) {
	t.Helper()
	all := objects(t, t.Name(), dir)
	deployments := of[*appsv1.Deployment](all)
	if len(deployments) == 0 {
		t.Error("nothing runs in it")
	}
	if !strings.Contains(content, "\nimages:") {
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
