// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"bytes"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/krm-function-runner/function-runner/build/images/release"
)

// TestPublishBuildsEveryProgramOnItsBase has a stand-in for ko: the bases have to be in the
// registry, and ko has to be called for each program.
func TestPublishBuildsEveryProgramOnItsBase(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/fnr"
	var out bytes.Buffer
	err := release.Publisher{
		Repository: repository, Tag: "v1", Revision: "c0ffee", Layers: t.TempDir(), Out: &out,
		Ko: release.Ko{Root: root, Command: func(dir string, args ...string) []string {
			for _, want := range []string{
				"--tags=v1", "--sbom=spdx", "--image-label=org.opencontainers.image.version=v1",
				"--image-label=org.opencontainers.image.revision=c0ffee",
				"--image-label=org.opencontainers.image.title=" + path.Base(dir),
			} {
				if !slices.Contains(args, want) {
					t.Errorf("in %s ko gets %q, want %s", dir, args, want)
				}
			}
			return []string{"true"}
		}},
	}.Publish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range release.Programs() {
		base, err := name.ParseReference(repository + "/" + program.Name + ":base")
		if err != nil {
			t.Fatal(err)
		}
		image, err := remote.Image(base)
		if err != nil {
			t.Fatalf("%s has no base: %v", program.Name, err)
		}
		if config, err := image.ConfigFile(); err != nil || config.Config.User != "65532" {
			t.Errorf("the base of %s runs as %+v, %v: want nonroot", program.Name, config, err)
		}
		if want := repository + "/" + program.Name + ":v1\n"; !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &out)
		}
	}
}
