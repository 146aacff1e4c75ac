package deploy_test

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// TestExamplesOfTheREADME builds the overlays that the documents show, each beside
// deploy/'s own.
func TestExamplesOfTheREADME(t *testing.T) {
	for name, dir := range manifests.Documented(t, root) {
		t.Run(name, func(t *testing.T) { checkExample(t, dir) })
	}
}

// checkExample checks that an overlay is a system, and that one which names images
// leaves none of ours.
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
