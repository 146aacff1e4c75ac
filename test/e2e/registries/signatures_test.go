// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"crypto/rand"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/cosigned"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestOnlySignedImagesRun evaluates images of the open registry in pods, with a policy that requires signatures: the
// table of verdicts.
func TestOnlySignedImagesRun(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	open := s.Registry(t, "open").Host
	repository, original := open+"/e2e/"+strings.ToLower(rand.Text()), open+"/krm-functions-catalog/set-namespace:v0.4.5"
	key, stranger := cosigned.NewKey(t), cosigned.NewKey(t)
	push := func(image string) (digest string) {
		return cosigned.Push(t, original, repository+"/"+image, image)
	}
	sign := func(by cosigned.Key, image, digest, beside string) { by.Sign(t, repository+"/"+image, digest, beside) }

	signed := push("signed:v1")
	sign(key, "signed", signed, signed)
	push("unsigned:v1")
	wrongly := push("wrongly:v1")
	sign(stranger, "wrongly", wrongly, wrongly)
	other := push("other:v1")
	sign(key, "other", signed, other)
	// The tag has left the image that is signed, and leads to another one.
	first := push("moved:v1")
	sign(key, "moved", first, first)
	second := cosigned.Push(t, original, repository+"/moved:v1", "another")
	// The signed image, by another tag and by its digest.
	cosigned.Push(t, original, repository+"/signed:v2", "signed:v1")

	sys := deployWithPolicy(t, key, repository+"/**")
	conn := sys.connect(t, "function-runner", "9445")
	for _, tc := range []struct {
		image, reason string
		code          codes.Code
		text          string
	}{
		{"signed:v1", "its signature is by the key", codes.OK, ""},
		{"signed:v2", "the signature is of the image, whatever its tag is", codes.OK, ""},
		{"signed@" + signed, "the same", codes.OK, ""},
		{"moved@" + first, "the signed image of a tag that has moved", codes.OK, ""},
		{"unsigned:v1", "", codes.PermissionDenied, "has to be signed by release. Found: no signature"},
		{"wrongly:v1", "", codes.PermissionDenied, "Found: 1 signature, which is not by a key of the policy"},
		{"other:v1", "", codes.PermissionDenied, "Found: a signature by release that is of another image, " + signed},
		{"moved:v1", "re-tagged", codes.PermissionDenied, "Found: no signature"},
		{"moved@" + second, "re-tagged", codes.PermissionDenied, "Found: no signature"},
	} {
		err := suite.SetNamespace(suite.Context(t), conn, repository+"/"+tc.image, grpc.WaitForReady(true))
		t.Logf("%-20.20s %-17s %s", tc.image, status.Code(err), status.Convert(err).Message())
		if status.Code(err) != tc.code || err != nil && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s (%s): %v, want %v with %q", tc.image, tc.reason, err, tc.code, tc.text)
		}
	}
}

// deployWithPolicy deploys function-runner with a policy that allows images of a pattern if they are signed.
func deployWithPolicy(t *testing.T, key cosigned.Key, pattern string) *system {
	t.Helper()
	sys := &system{services: s.Namespace(t), functions: s.Namespace(t)}
	rename := strings.NewReplacer("porch-system", sys.services, "porch-fn-system", sys.functions)
	dir := filepath.Join(root, "deploy/overlays/dev-function-runner")
	objects := append(suite.Namespaces(t), s.OnTheBed(t, suite.Build(t, dir))...)
	objects = append(objects, key.Policy(t, "porch-system", "policy", pattern))
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			suite.SetVariable(t, o, "FNR_POLICY_FILE", "/etc/function-runner/policy.yaml")
			suite.Mount(t, o, "policy", "/etc/function-runner",
				map[string]any{"configMap": map[string]any{"name": "policy"}})
		}
	}
	s.Install(suite.Context(t), t, suite.Rewrite(t, objects, func(document string) string {
		return s.OwnImages(t, suite.Current, rename.Replace(document))
	})...)
	return sys
}
