// SPDX-License-Identifier: Apache-2.0

package system

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// registries is the number of registries that the programs may use without TLS. The first of them works and serves
// well-behaved callers. Attacks control the rest.
const registries = 5

// newRegistries chooses the addresses of all registries.
func (s *System) newRegistries() error {
	for range registries {
		address, err := s.freeAddress()
		if err != nil {
			return err
		}
		s.Registries = append(s.Registries, address)
	}
	s.registry, s.Registries = s.Registries[0], s.Registries[1:]
	return nil
}

// insecureRegistries returns the environment variable that permits registries without TLS, as NAME=VALUE.
func (s *System) insecureRegistries() string {
	return "FNR_INSECURE_REGISTRIES=" + strings.Join(append([]string{s.registry}, s.Registries...), ",")
}

// Repository returns a repository in which every tag exists, for well-behaved callers that resolve tags.
func (s *System) Repository() string { return s.registry + "/fns/steady" }

func (s *System) startRegistry() error {
	listener, err := net.Listen("tcp", s.registry)
	if err != nil {
		return fmt.Errorf("start a registry: %w", err)
	}
	s.serving = &http.Server{Handler: newRegistry()}
	go func() { _ = s.serving.Serve(listener) }() // returns when its listener closes
	return nil
}

// newRegistry returns a handler that serves the same image for every tag of every repository.
func newRegistry() http.Handler {
	const (
		configType   = "application/vnd.oci.image.config.v1+json"
		manifestType = "application/vnd.oci.image.manifest.v1+json"
	)
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{"Entrypoint":["/fn"]},`+
		`"rootfs":{"type":"layers","diff_ids":[]}}`, runtime.GOARCH)
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,`+
		`"config":{"mediaType":%q,"digest":%q,"size":%d},"layers":[]}`,
		manifestType, configType, digestOf(config), len(config))
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/", func(w http.ResponseWriter, r *http.Request) {
		content := ""
		switch path.Base(path.Dir(r.URL.Path)) {
		case "manifests":
			content = manifest
			w.Header().Set("Content-Type", manifestType)
		case "blobs":
			content = config
		}
		writeContent(w, r, content)
	})
	return mux
}

// writeContent answers a request for a manifest or a blob with content.
func writeContent(w http.ResponseWriter, r *http.Request, content string) {
	w.Header().Set("Docker-Content-Digest", digestOf(content))
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(content))
	}
}

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}
