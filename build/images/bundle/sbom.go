// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/build/images/signature"
)

// verifySBOMs checks the SBOM of each platform's image.
func verifySBOMs(index v1.ImageIndex, take func(digest, what string) v1.Image, attested []string) error {
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, platform := range manifest.Manifests {
		digest := platform.Digest.String()
		if err := verifySBOM(take(digest, "sbom"), digest, attested); err != nil {
			return fmt.Errorf("%s: %w", platform.Platform, err)
		}
	}
	return nil
}

// verifySBOM checks that a list of modules is one, that it is about the image, and that the image's provenance
// names it.
func verifySBOM(sbom v1.Image, digest string, attested []string) error {
	if sbom == nil {
		return errors.New("there is no SBOM")
	}
	own, err := sbom.Digest()
	if err != nil {
		return fmt.Errorf("read the SBOM: %w", err)
	}
	if !slices.Contains(attested, own.String()) {
		return fmt.Errorf("the SBOM %s is not in the provenance", own)
	}
	content, err := document(sbom)
	if err != nil {
		return err
	}
	return verifySubject(content, digest)
}

// document returns the content of an SBOM.
func document(sbom v1.Image) ([]byte, error) {
	manifest, err := sbom.Manifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Layers) != 1 {
		return nil, fmt.Errorf("the SBOM has %d layers, want 1", len(manifest.Layers))
	}
	return signature.Layer(sbom, manifest.Layers[0])
}

// verifySubject checks that the content of an SBOM describes an image.
func verifySubject(content []byte, digest string) error {
	var document struct {
		SPDXVersion string `json:"spdxVersion"`
		Packages    []struct {
			Name string `json:"name"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(content, &document); err != nil {
		return fmt.Errorf("read the SBOM: %w", err)
	}
	about := false
	for _, p := range document.Packages {
		about = about || p.Name == digest
	}
	if document.SPDXVersion == "" || !about {
		return fmt.Errorf("the SBOM (SPDX %q, %d packages) does not describe %s",
			document.SPDXVersion, len(document.Packages), digest)
	}
	return nil
}
