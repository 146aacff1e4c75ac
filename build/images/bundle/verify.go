// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/krm-function-runner/function-runner/build/images/provenance"
	"github.com/krm-function-runner/function-runner/build/images/signature"
)

// Verified is an image that is what its release says.
type Verified struct {
	// Name is program:version, and Digest that of its index.
	Name, Digest string
	// Revision is the commit that it was built from.
	Revision string
}

// Verify checks the images: every digest, and for each image a signature and a provenance by the key, and for
// each of its platforms an SBOM.
func (b Bundle) Verify(key *ecdsa.PublicKey) ([]Verified, error) {
	if err := b.verifyBlobs(); err != nil {
		return nil, err
	}
	entries, all, err := b.entries()
	if err != nil {
		return nil, err
	}
	named := map[string]v1.Image{} // by tag
	for _, e := range entries {
		if !e.descriptor.MediaType.IsImage() {
			continue
		}
		about, err := all.Image(e.descriptor.Digest)
		if err == nil {
			err = validate.Image(about, validate.Fast)
		}
		if err != nil {
			return nil, fmt.Errorf("verify %s: %w", e.name, err)
		}
		named[tag(e.name)] = about
	}
	var verified []Verified
	for _, e := range entries {
		if !e.descriptor.MediaType.IsIndex() {
			continue
		}
		image, err := verify(e, all, named, key)
		if err != nil {
			return nil, fmt.Errorf("verify %s: %w", e.name, err)
		}
		verified = append(verified, image)
	}
	if len(verified) == 0 {
		return nil, errors.New("verify the images: there are none")
	}
	return verified, nil
}

// verifyBlobs checks that each file has the hash that is its name.
func (b Bundle) verifyBlobs() error {
	blobs := filepath.Join(string(b.path), "blobs")
	return filepath.WalkDir(blobs, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("verify a digest: %w", err)
		}
		defer func() { _ = file.Close() }()
		computed, _, err := v1.SHA256(file)
		if err != nil {
			return fmt.Errorf("verify the digest of %s: %w", path, err)
		}
		if algorithm := filepath.Base(filepath.Dir(path)); computed.String() != algorithm+":"+entry.Name() {
			return fmt.Errorf("%s has the digest %s: the file is damaged, unpack the archive again", path, computed)
		}
		return nil
	})
}

// verify checks one image for several platforms.
func verify(e entry, all v1.ImageIndex, named map[string]v1.Image, key *ecdsa.PublicKey) (Verified, error) {
	index, err := all.ImageIndex(e.descriptor.Digest)
	if err != nil {
		return Verified{}, err
	}
	if err := validate.Index(index, validate.Fast); err != nil { // all that it is made of is there
		return Verified{}, err
	}
	digest := e.descriptor.Digest.String()
	signatures, attestations := named[signature.Tag(digest, "sig")], named[signature.Tag(digest, "att")]
	if signatures == nil || attestations == nil {
		return Verified{}, errors.New("it has no signature, or no provenance")
	}
	if err := signature.Verify(signatures, digest, key); err != nil {
		return Verified{}, err
	}
	build, err := provenance.Verify(attestations, digest, key)
	if err != nil {
		return Verified{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return Verified{}, err
	}
	for _, platform := range manifest.Manifests {
		of := platform.Digest.String()
		if err := verifySBOM(named[signature.Tag(of, "sbom")], of, build.SBOMs); err != nil {
			return Verified{}, fmt.Errorf("%s: %w", platform.Platform, err)
		}
	}
	return Verified{Name: e.name, Digest: digest, Revision: build.Revision}, nil
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
	manifest, err := sbom.Manifest()
	if err != nil {
		return err
	}
	if len(manifest.Layers) != 1 {
		return fmt.Errorf("the SBOM has %d layers, want 1", len(manifest.Layers))
	}
	content, err := signature.Layer(sbom, manifest.Layers[0])
	if err != nil {
		return err
	}
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
