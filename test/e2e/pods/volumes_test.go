// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestVolumesOverTheWrapperServer has images whose VOLUME is at, above or below the path of the wrapper server. Such an
// image is refused, because the volume would hide the wrapper server. Other images run before and afterwards.
func TestVolumesOverTheWrapperServer(t *testing.T) {
	for _, launcher := range []string{"image-volume", "init-container"} {
		t.Run(launcher, func(t *testing.T) {
			sys := microservices(t, map[string]string{"FNR_LAUNCHER": launcher})
			ctx, conn := suite.Context(t), sys.connect(t)
			for tag, path := range map[string]string{
				"volume-at": "/wrapper-server-tools", "volume-below": "/wrapper-server-tools/ko-app", "volume-root": "/",
				"volume-elsewhere": "/data",
			} {
				volume := func(config *v1.Config) { config.Volumes = map[string]struct{}{path: {}} }
				out, err := evaluate(ctx, conn, copyEcho(t, tag, volume), conformance.List)
				switch refused := status.Code(err) == codes.FailedPrecondition; {
				case path == "/data" && (err != nil || out != conformance.List):
					t.Errorf("with VOLUME %s: %q, %v", path, out, err)
				case path != "/data" && (!refused || !strings.Contains(err.Error(), "hides the wrapper server")):
					t.Errorf("with VOLUME %s: %q, %v, want a refusal", path, out, err)
				}
			}
			if _, err := evaluate(ctx, conn, echo(t), conformance.List); err != nil {
				t.Errorf("another function, afterwards: %v", err)
			}
		})
	}
}
