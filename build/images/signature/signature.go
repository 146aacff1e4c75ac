// SPDX-License-Identifier: Apache-2.0

// Package signature signs images in the form that `cosign verify --key` reads: an image beside the
// signed one, at a tag made from its digest, with a layer for each signature.
package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What cosign calls the layer of a signature, and the annotation with it.
const (
	payloadType = "application/vnd.dev.cosign.simplesigning.v1+json"
	annotation  = "dev.cosignproject.cosign/signature"
)

// payload is what is signed.
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// Tag returns the tag at which something about an image is: its signatures (sig), attestations (att) or list of
// modules (sbom).
func Tag(digest, what string) string {
	return strings.Replace(digest, ":", "-", 1) + "." + what
}

// Add returns the signatures of an image with one more, unless they have it already. Without any, signatures is
// Empty.
func Add(signatures v1.Image, image name.Digest, key *ecdsa.PrivateKey) (v1.Image, error) {
	content, err := content(image)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", image, err)
	}
	signed, err := Bytes(content, key)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", image, err)
	}
	manifest, err := signatures.Manifest()
	if err != nil {
		return nil, fmt.Errorf("read the signatures of %s: %w", image, err)
	}
	for _, layer := range manifest.Layers {
		if layer.Annotations[annotation] == signed {
			return signatures, nil
		}
	}
	return mutate.Append(signatures, mutate.Addendum{
		Layer: static.NewLayer(content, payloadType), Annotations: map[string]string{annotation: signed},
	})
}

// Empty returns an OCI image without layers.
func Empty() v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
}

// content returns what is signed of an image.
func content(image name.Digest) ([]byte, error) {
	var p payload
	p.Critical.Identity.Reference = image.Context().Name()
	p.Critical.Image.Digest = image.DigestStr()
	p.Critical.Type = "cosign container image signature"
	return json.Marshal(p)
}

// Bytes returns the signature of some content, which is the same each time.
func Bytes(content []byte, key *ecdsa.PrivateKey) (string, error) {
	hash := sha256.Sum256(content)
	raw, err := key.Sign(nil, hash[:], crypto.SHA256) // without a source of randomness, it is deterministic
	return base64.StdEncoding.EncodeToString(raw), err
}

// VerifyBytes reports whether a signature is that of the content by the key.
func VerifyBytes(content []byte, signed string, key *ecdsa.PublicKey) bool {
	raw, err := base64.StdEncoding.DecodeString(signed)
	hash := sha256.Sum256(content)
	return err == nil && ecdsa.VerifyASN1(key, hash[:], raw)
}

// Verify returns an error unless one of the signatures is that of the key for an image with the digest. The
// image may have moved to another repository.
func Verify(signatures v1.Image, digest string, key *ecdsa.PublicKey) error {
	manifest, err := signatures.Manifest()
	if err != nil {
		return fmt.Errorf("read the signatures of %s: %w", digest, err)
	}
	for _, layer := range manifest.Layers {
		content, err := Layer(signatures, layer)
		if err != nil {
			return fmt.Errorf("read a signature of %s: %w", digest, err)
		}
		var signed payload
		if VerifyBytes(content, layer.Annotations[annotation], key) &&
			json.Unmarshal(content, &signed) == nil && signed.Critical.Image.Digest == digest {
			return nil
		}
	}
	return fmt.Errorf("%s has no signature by the key, but %d others: do not use it, or name the key of its release",
		digest, len(manifest.Layers))
}

// maxLayer bounds what Layer reads: signatures, and lists of modules.
const maxLayer = 16 << 20

// Layer returns the content of a layer that is no file system.
func Layer(of v1.Image, layer v1.Descriptor) ([]byte, error) {
	if layer.Size > maxLayer {
		return nil, fmt.Errorf("the layer %s has %d bytes: more than %d are not read", layer.Digest, layer.Size, maxLayer)
	}
	found, err := of.LayerByDigest(layer.Digest)
	if err != nil {
		return nil, err
	}
	reader, err := found.Compressed()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, maxLayer))
	return content, errors.Join(err, reader.Close())
}
