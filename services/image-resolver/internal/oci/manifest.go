// SPDX-License-Identifier: Apache-2.0

// Package oci parses the manifests and configurations of images. It performs no I/O. It decodes only the fields that it
// needs, so that a hostile document needs little more memory than its text. All errors are of class fault.Precondition,
// because a retry cannot help. The user must build and push another image.
package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

// MediaTypes are the media types of all manifests and indexes that this package can parse.
var MediaTypes = []string{
	string(types.OCIImageIndex), string(types.DockerManifestList),
	string(types.OCIManifestSchema1), string(types.DockerManifestSchema2),
}

// configTypes are the media types of container configurations. Old image builders set no type, so it may be empty.
var configTypes = []types.MediaType{types.OCIConfigJSON, types.DockerConfigJSON, ""}

// Manifest is the manifest of an image, or an index that lists the manifests of several images.
type Manifest struct {
	// Digest is the digest of this manifest or index itself.
	Digest string
	// Children are the manifests in an index, for example for several platforms. The list is nil for a single image.
	Children []Child
	// Config is the digest of the image's configuration. It is empty for an index.
	Config string
	// LayerBytes is the compressed size of all layers of the image, in bytes.
	LayerBytes int64
	// Layers are the layers of the image, from the lowest to the highest.
	Layers []Layer
}

// Layer identifies a layer of an image by the digest and the size of its compressed content in the registry.
type Layer struct {
	Digest string
	Size   int64
}

// Child is an entry of an index, for example the image for linux/arm64.
type Child struct {
	Digest string
	// Platform is the platform that the index specifies for the child. It is nil if the index specifies none.
	Platform *Platform
}

// IsIndex reports whether m is an index of several images.
func (m *Manifest) IsIndex() bool { return m.Children != nil }

// Digest returns the SHA-256 digest of content in the form "sha256:HEX".
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ParseManifest decodes a manifest or an index. A media type in the document takes precedence over mediaType, which
// is the media type in the registry's answer.
func ParseManifest(mediaType string, raw []byte) (*Manifest, error) {
	var probe struct {
		MediaType string  `json:"mediaType"`
		Manifests present `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &probe); err != nil {
		return nil, fault.New(fault.Precondition, "the manifest is not valid JSON: %w: push the image again", err)
	}
	kind := types.MediaType(mediaType)
	if probe.MediaType != "" {
		kind = types.MediaType(probe.MediaType)
	}
	switch {
	case kind == types.DockerManifestSchema1 || kind == types.DockerManifestSchema1Signed:
		return nil, fault.New(fault.Precondition,
			"the manifest has the obsolete format %q: push the image again with a current tool", kind)
	case kind.IsIndex() || (!kind.IsImage() && bool(probe.Manifests)):
		return parseIndex(raw)
	default:
		return parseImage(raw)
	}
}

// platform is the JSON form of a [Platform], in an index or a configuration.
type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant"`
}

func parseIndex(raw []byte) (*Manifest, error) {
	var index struct {
		Manifests list[struct {
			MediaType types.MediaType `json:"mediaType"`
			Digest    v1.Hash         `json:"digest"`
			Platform  *platform       `json:"platform"`
			// Annotations contain a reference type if the entry is an attestation instead of an image.
			Annotations struct {
				ReferenceType string `json:"vnd.docker.reference.type"`
			} `json:"annotations"`
		}] `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, invalidDocument("the index", err)
	}
	m := &Manifest{Digest: Digest(raw), Children: []Child{}}
	for _, d := range index.Manifests {
		if (!d.MediaType.IsImage() && !d.MediaType.IsIndex()) || d.Annotations.ReferenceType != "" {
			continue
		}
		child := Child{Digest: d.Digest.String()}
		if d.Platform != nil {
			named := Platform(*d.Platform).normalize()
			child.Platform = &named
		}
		m.Children = append(m.Children, child)
	}
	return m, nil
}

func parseImage(raw []byte) (*Manifest, error) {
	var image struct {
		Config struct {
			MediaType types.MediaType `json:"mediaType"`
			Digest    v1.Hash         `json:"digest"`
		} `json:"config"`
		Layers list[struct {
			Size   int64   `json:"size"`
			Digest v1.Hash `json:"digest"`
		}] `json:"layers"`
	}
	if err := json.Unmarshal(raw, &image); err != nil {
		return nil, invalidDocument("the manifest", err)
	}
	if !slices.Contains(configTypes, image.Config.MediaType) {
		return nil, fault.New(fault.Precondition, "it is no container image: its configuration is of type %q",
			excerpt.Middle(string(image.Config.MediaType), maxQuoted))
	}
	if image.Config.Digest.Hex == "" {
		return nil, fault.New(fault.Precondition, "the manifest names no configuration: push the image again")
	}
	m := &Manifest{Digest: Digest(raw), Config: image.Config.Digest.String()}
	for _, layer := range image.Layers {
		m.LayerBytes += min(max(layer.Size, 0), math.MaxInt64-m.LayerBytes)
		m.Layers = append(m.Layers, Layer{Digest: layer.Digest.String(), Size: layer.Size})
	}
	return m, nil
}

// Select returns the manifest for the first platform in want that the index contains. If there is none, it returns up
// to 16 manifests whose platforms are missing in the index. Callers must then read the images' configurations in this
// order to find their platforms.
func (m *Manifest) Select(want Platforms) ([]Child, error) {
	var unnamed []Child
	var others []string
	for _, c := range m.Children {
		switch {
		case c.Platform == nil:
			unnamed = append(unnamed, c)
		case c.Platform.OS != "unknown": // attestations have an unknown platform
			others = append(others, c.Platform.String())
		}
	}
	for _, platform := range want {
		if child, ok := m.lowestVariant(platform); ok {
			return []Child{child}, nil
		}
	}
	switch {
	case len(unnamed) > 0:
		return unnamed[:min(len(unnamed), maxUnnamed)], nil
	case len(others) == 0:
		return nil, fault.New(fault.Precondition, "there is no image for %s: the index lists none at all", want)
	}
	return nil, fault.New(fault.Precondition, "there is no image for %s, only for %s: push one for that platform too",
		want, excerpt.Middle(strings.Join(others, ", "), maxQuoted))
}

// maxUnnamed is the maximum number of manifests without a platform that Select returns. Each costs further requests.
const maxUnnamed = 16

// lowestVariant returns the child of the index that runs on the platform. If there are several, it returns the child
// with the lowest processor variant, because this child runs on the most machines.
func (m *Manifest) lowestVariant(platform Platform) (child Child, ok bool) {
	for _, c := range m.Children {
		if c.Platform != nil && c.Platform.runsOn(platform) && (!ok || c.Platform.Variant < child.Platform.Variant) {
			child, ok = c, true
		}
	}
	return child, ok
}
