// SPDX-License-Identifier: Apache-2.0

package kptcompare_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// startRegistry serves the functions of the comparison as images NAME:v1, and returns the registry's host and port.
// All images share a layer: the functions are one program, and their names are links to it.
func startRegistry(t *testing.T) string {
	t.Helper()
	blobs, manifests := map[string][]byte{}, map[string][]byte{}
	add := func(content []byte) map[string]any {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
		blobs[digest] = content
		return map[string]any{"digest": digest, "size": len(content)}
	}
	functions, err := os.ReadDir(filepath.Join(programs, "functions"))
	if err != nil {
		t.Fatal(err)
	}
	files := layer(t, functions)
	for _, function := range functions {
		config := add(encode(t, map[string]any{
			"os": "linux", "architecture": runtime.GOARCH,
			"config": map[string]any{"Entrypoint": []string{"/fn/" + function.Name()}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []any{add(files)["digest"]}},
		}))
		config["mediaType"] = "application/vnd.oci.image.config.v1+json"
		content := add(files)
		content["mediaType"] = "application/vnd.oci.image.layer.v1.tar"
		manifest := encode(t, map[string]any{
			"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []any{content},
		})
		manifests[function.Name()+"/v1"] = manifest
		manifests[function.Name()+"/"+add(manifest)["digest"].(string)] = manifest
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v2/"), "/")
		content, ok := []byte("{}"), len(parts) < 3
		if len(parts) == 3 && parts[1] == "manifests" {
			content, ok = manifests[parts[0]+"/"+parts[2]]
			w.Header().Set("Content-Type", manifestType)
		} else if len(parts) == 3 {
			content, ok = blobs[parts[2]]
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256(content)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(content)
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

func encode(t *testing.T, value any) []byte {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// layer returns a layer with the program of the functions and their names.
func layer(t *testing.T, functions []os.DirEntry) []byte {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(programs, "docker"))
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	headers := []*tar.Header{{Name: "fn/program", Mode: 0o755, Size: int64(len(program))}}
	for _, function := range functions {
		headers = append(headers, &tar.Header{Typeflag: tar.TypeSymlink, Name: "fn/" + function.Name(), Linkname: "program"})
	}
	for i, header := range headers {
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			_, _ = w.Write(program)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}
