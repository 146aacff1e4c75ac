// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// newKey returns a signing key.
func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// digestOf returns the digest of an image in a registry.
func digestOf(t *testing.T, image string) string {
	t.Helper()
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	descriptor, err := remote.Head(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return descriptor.Digest.String()
}

// sign signs a digest, and puts the signature where cosign looks for those of an image.
func sign(t *testing.T, image, digest string, key *ecdsa.PrivateKey) {
	t.Helper()
	payload := []byte(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":"` + digest +
		`"},"type":"cosign container image signature"},"optional":null}`)
	hash := sha256.Sum256(payload)
	signature, err := key.Sign(rand.Reader, hash[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	signatures, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:       static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)},
	})
	if err != nil {
		t.Fatal(err)
	}
	repository := image[:strings.LastIndexByte(image, ':')]
	at, err := name.ParseReference(repository + ":" + strings.Replace(digestOf(t, image), ":", "-", 1) + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(at, signatures, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// writePolicy writes a policy that requires signatures by a key of images below prefix.
func writePolicy(t *testing.T, prefix string, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	for path, content := range map[string]string{
		file: "default: deny\nsigners: [{name: release, keyFiles: [cosign.pub]}]\n" +
			"rules: [{name: signed, images: ['" + prefix + "/**'], action: allow, signers: [release]}]\n",
		filepath.Join(dir, "cosign.pub"): string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// TestOnlySignedImagesGetPods has a registry, a policy and a Kubernetes that rejects pods: how far an evaluation
// gets shows what was decided.
func TestOnlySignedImagesGetPods(t *testing.T) {
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/down/") && strings.HasSuffix(r.URL.Path, ".sig") && r.Method == http.MethodGet {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		images.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://") + "/fns"
	names := []string{"signed", "unsigned", "stranger", "other", "down"}
	for _, image := range names {
		push(t, host+"/"+image+":v1")
	}
	key, signed := newKey(t), digestOf(t, host+"/signed:v1")
	sign(t, host+"/signed:v1", signed, key)
	sign(t, host+"/stranger:v1", digestOf(t, host+"/stranger:v1"), newKey(t))
	sign(t, host+"/other:v1", signed, key)
	sign(t, host+"/down:v1", digestOf(t, host+"/down:v1"), key)

	t.Setenv("FNR_INSECURE_REGISTRIES", strings.TrimSuffix(host, "/fns"))
	t.Setenv("FNR_POLICY_FILE", writePolicy(t, host, key))
	client, _ := start(t, kubeconfig(t))
	tests := map[string]struct {
		code codes.Code
		text string
	}{
		"signed":   {codes.FailedPrecondition, "create pod signed-v1-1-"},
		"unsigned": {codes.PermissionDenied, "has to be signed by release. Found: no signature"},
		"stranger": {codes.PermissionDenied, "Found: 1 signature, which is not by a key of the policy"},
		"other":    {codes.PermissionDenied, "Found: a signature by release that is of another image, " + signed},
		"down":     {codes.Unavailable, "verify the signatures of " + host + "/down:v1 for the policy: "},
	}
	for _, image := range names {
		_, err := client.EvaluateFunction(t.Context(),
			&evaluator.EvaluateFunctionRequest{Image: host + "/" + image + ":v1", ResourceList: []byte("kind: ResourceList\n")})
		got, want := status.Convert(err), tests[image]
		t.Logf("%-9s %-19s %s", image, got.Code(), got.Message())
		if got.Code() != want.code || !strings.Contains(got.Message(), want.text) {
			t.Errorf("%s: %v, want %v with %q", image, err, want.code, want.text)
		}
	}
}
