// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/krm-function-runner/function-runner/build/images/release"
	"github.com/krm-function-runner/function-runner/build/images/signature"
)

func TestEveryImageIsSigned(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/fnr"
	var want strings.Builder
	for _, program := range release.Programs() {
		image, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		tag, err := name.NewTag(repository + "/" + program.Name + ":v1")
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(tag, image); err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		want.WriteString(tag.Context().Digest(digest.String()).String() + "\n")
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-key", keyFile(t), "-tag", "v1", repository}, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want.String() {
		t.Errorf("printed is\n%swant\n%s", &out, want.String())
	}
	for _, line := range strings.Fields(out.String()) {
		signed, err := name.NewDigest(line)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Head(signature.Tag(signed)); err != nil {
			t.Errorf("%s has no signature: %v", signed, err)
		}
	}
}

// TestMissingImage: a tag that is not there is no success.
func TestMissingImage(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/fnr"
	var out bytes.Buffer
	err := run(t.Context(), []string{"-key", keyFile(t), "-tag", "v1", repository}, &out)
	if err == nil || !strings.Contains(err.Error(), "wrapper-server:v1") {
		t.Errorf("the error is %v, want the image that is missing", err)
	}
}

func keyFile(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
