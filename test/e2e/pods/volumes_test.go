// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// withVolume pushes the image of echo with a VOLUME at a path, and returns its name.
func withVolume(t *testing.T, tag, path string) string {
	t.Helper()
	from, err := name.ParseReference(echo(t), name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	ctx := suite.Context(t)
	image, err := remote.Image(from, remote.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.Config.Volumes = map[string]struct{}{path: {}}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	to := from.Context().Tag(tag)
	if err := remote.Write(to, image, remote.WithContext(ctx)); err != nil {
		t.Fatal(err)
	}
	return to.String()
}

// TestVolumesOverTheWrapperServer has images whose VOLUME is at, above or below the path of the wrapper server. Such an
// image is refused, or the function runs with our wrapper server; afterwards other functions start as before.
func TestVolumesOverTheWrapperServer(t *testing.T) {
	for _, launcher := range []string{"image-volume", "init-container"} {
		t.Run(launcher, func(t *testing.T) {
			sys := microservices(t, map[string]string{"FNR_LAUNCHER": launcher})
			ctx, conn := suite.Context(t), sys.connect(t)
			for tag, path := range map[string]string{
				"volume-at": "/wrapper-server-tools", "volume-below": "/wrapper-server-tools/ko-app", "volume-root": "/",
				"volume-elsewhere": "/data",
			} {
				out, err := evaluate(ctx, conn, withVolume(t, tag, path), conformance.List)
				switch {
				case err == nil && !strings.Contains(out, "ResourceList"):
					t.Errorf("with VOLUME %s, the answer is %q", path, out)
				case err != nil && path == "/data":
					t.Errorf("with VOLUME %s: %v", path, err)
				case err != nil:
					t.Logf("VOLUME %s is refused: %v", path, err)
				}
			}
			if _, err := evaluate(ctx, conn, echo(t), conformance.List); err != nil {
				t.Errorf("another function, afterwards: %v", err)
			}
		})
	}
}
