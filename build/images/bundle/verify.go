// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
	about, err := validated(entries, all)
	if err != nil {
		return nil, err
	}
	var verified []Verified
	for _, e := range entries {
		if !e.descriptor.MediaType.IsIndex() {
			continue
		}
		image, err := verify(e, all, about, key)
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

// validated returns the images that are about others, signatures for example, by tag.
func validated(entries []entry, all v1.ImageIndex) (map[string]v1.Image, error) {
	about := map[string]v1.Image{}
	for _, e := range entries {
		if !e.descriptor.MediaType.IsImage() {
			continue
		}
		image, err := all.Image(e.descriptor.Digest)
		if err == nil {
			err = validate.Image(image, validate.Fast)
		}
		if err != nil {
			return nil, fmt.Errorf("verify %s: %w", e.name, err)
		}
		about[tag(e.name)] = image
	}
	return about, nil
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

// verify checks one image for several platforms, by the images about it.
func verify(e entry, all v1.ImageIndex, about map[string]v1.Image, key *ecdsa.PublicKey) (Verified, error) {
	index, err := all.ImageIndex(e.descriptor.Digest)
	if err != nil {
		return Verified{}, err
	}
	if err := validate.Index(index, validate.Fast); err != nil { // all that it is made of is there
		return Verified{}, err
	}
	digest := e.descriptor.Digest.String()
	build, err := verifySigned(digest, about, key)
	if err != nil {
		return Verified{}, err
	}
	if err := verifySBOMs(index, about, build.SBOMs); err != nil {
		return Verified{}, err
	}
	return Verified{Name: e.name, Digest: digest, Revision: build.Revision}, nil
}

// verifySigned checks the signature and the provenance of an image, and returns the provenance.
func verifySigned(digest string, about map[string]v1.Image, key *ecdsa.PublicKey) (provenance.Build, error) {
	signatures, attestations := about[signature.Tag(digest, "sig")], about[signature.Tag(digest, "att")]
	if signatures == nil || attestations == nil {
		return provenance.Build{}, errors.New("it has no signature, or no provenance")
	}
	if err := signature.Verify(signatures, digest, key); err != nil {
		return provenance.Build{}, err
	}
	return provenance.Verify(attestations, digest, key)
}
