// SPDX-License-Identifier: Apache-2.0

// Package signature signs images in the form that `cosign verify --key` reads: an image beside the
// signed one, at a tag made from its digest, with a layer for each signature.
package signature

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
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

// Tag returns the tag at which an image's signatures are.
func Tag(signed name.Digest) name.Tag {
	return signed.Context().Tag(strings.Replace(signed.DigestStr(), ":", "-", 1) + ".sig")
}

// Sign adds a signature of an image, unless it is there already. Signatures of other keys stay.
func Sign(ctx context.Context, image name.Digest, key *ecdsa.PrivateKey, options ...remote.Option) error {
	content, signed, err := sign(image, key)
	if err != nil {
		return fmt.Errorf("sign %s: %w", image, err)
	}
	options = append(options, remote.WithContext(ctx))
	signatures, err := existing(Tag(image), options)
	if err != nil {
		return fmt.Errorf("read the signatures of %s: %w", image, err)
	}
	if has(signatures, signed) {
		return nil
	}
	added, err := mutate.Append(signatures, mutate.Addendum{
		Layer: static.NewLayer(content, payloadType), Annotations: map[string]string{annotation: signed},
	})
	if err != nil {
		return fmt.Errorf("add a signature of %s: %w", image, err)
	}
	if err := remote.Write(Tag(image), added, options...); err != nil {
		return fmt.Errorf("push the signature of %s: %w", image, err)
	}
	return nil
}

// sign returns a payload and its signature, which is the same each time.
func sign(image name.Digest, key *ecdsa.PrivateKey) (content []byte, signed string, err error) {
	var p payload
	p.Critical.Identity.Reference = image.Context().Name()
	p.Critical.Image.Digest = image.DigestStr()
	p.Critical.Type = "cosign container image signature"
	if content, err = json.Marshal(p); err != nil {
		return nil, "", err
	}
	hash := sha256.Sum256(content)
	raw, err := key.Sign(nil, hash[:], crypto.SHA256) // without a source of randomness, it is deterministic
	return content, base64.StdEncoding.EncodeToString(raw), err
}

// existing returns the image with the signatures that there are.
func existing(tag name.Tag, options []remote.Option) (v1.Image, error) {
	image, err := remote.Image(tag, options...)
	var refused *transport.Error
	if errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
		return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), nil
	}
	return image, err
}

func has(signatures v1.Image, signed string) bool {
	manifest, err := signatures.Manifest()
	if err != nil {
		return false
	}
	for _, layer := range manifest.Layers {
		if layer.Annotations[annotation] == signed {
			return true
		}
	}
	return false
}
