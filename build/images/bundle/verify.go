// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// Verify checks the images: every digest, and for each image a signature and a provenance by the key, which has its
// name, and for each of its platforms an SBOM. Nothing else may be in the bundle: all of it would be pushed.
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
	switch {
	case len(verified) == 0:
		return nil, errors.New("verify the images: there are none")
	case len(about) > 0:
		return nil, fmt.Errorf("verify the images: %s belongs to none of them: do not use the bundle",
			slices.Min(slices.Collect(maps.Keys(about))))
	}
	return verified, nil
}

// validated returns the images that are about others, signatures for example, by name.
func validated(entries []entry, all v1.ImageIndex) (map[string]v1.Image, error) {
	about, names := map[string]v1.Image{}, map[string]bool{}
	for _, e := range entries {
		if names[e.name] {
			return nil, fmt.Errorf("verify %s: two images have this name: do not use the bundle", e.name)
		}
		names[e.name] = true
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
		about[e.name] = image
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

// verify checks one image for several platforms, by the images about it, which it removes.
func verify(e entry, all v1.ImageIndex, about map[string]v1.Image, key *ecdsa.PublicKey) (Verified, error) {
	index, err := all.ImageIndex(e.descriptor.Digest)
	if err != nil {
		return Verified{}, err
	}
	if err := validate.Index(index, validate.Fast); err != nil { // all that it is made of is there
		return Verified{}, err
	}
	digest := e.descriptor.Digest.String()
	program, _, _ := strings.Cut(e.name, ":")
	take := func(digest, what string) v1.Image {
		name := program + ":" + signature.Tag(digest, what)
		defer delete(about, name)
		return about[name]
	}
	build, err := verifySigned(digest, take, key)
	if err != nil {
		return Verified{}, err
	}
	if signed := build.Program + ":" + build.Version; signed != e.name {
		return Verified{}, fmt.Errorf("by its provenance it is %s: do not use the bundle", signed)
	}
	if err := verifySBOMs(index, take, build.SBOMs); err != nil {
		return Verified{}, err
	}
	return Verified{Name: e.name, Digest: digest, Revision: build.Revision}, nil
}

// verifySigned checks the signature and the provenance of an image, and returns the provenance.
func verifySigned(
	digest string, take func(digest, what string) v1.Image, key *ecdsa.PublicKey,
) (provenance.Build, error) {
	signatures, attestations := take(digest, "sig"), take(digest, "att")
	if signatures == nil || attestations == nil {
		return provenance.Build{}, errors.New("it has no signature, or no provenance")
	}
	if err := signature.Verify(signatures, digest, key); err != nil {
		return provenance.Build{}, err
	}
	return provenance.Verify(attestations, digest, key)
}
