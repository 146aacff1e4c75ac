// SPDX-License-Identifier: Apache-2.0

// Package imagename converts the name of a container image to its canonical name.
//
// The exec evaluator's configuration, pools of pods and policies compare images by their canonical names. All
// spellings of an image have the same canonical name. Images of different registries never have the same canonical
// name.
package imagename

import (
	// We link these hashes, because package reference checks the length of a digest only if its algorithm is linked.
	_ "crypto/sha256"
	_ "crypto/sha512"
	"fmt"
	"path"
	"strings"

	"github.com/distribution/reference"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// DefaultPrefix is the default prefix for image names without a slash, such as "set-namespace:v0.4".
const DefaultPrefix = "ghcr.io/kptdev/krm-functions-catalog"

// MaxBytes is the maximum length of an image's name, in bytes. Registries do not use longer names, and longer texts
// must not get into labels, logs and headers.
const MaxBytes = 1 << 10

// Name is the canonical name of a container image. The zero Name means no image.
type Name struct {
	// Repository is the registry and the path, such as "docker.io/library/busybox".
	Repository string
	// Tag is the image's tag, such as "v0.4.5". It is empty if the name contains only a digest.
	Tag string
	// Digest is the image's digest, such as "sha256:0123…". It is empty if the name contains no digest.
	Digest string
}

// Parse returns the canonical name of image. It adds defaultPrefix to a name without a slash, docker.io to a name
// without a registry, and the tag "latest" to a name with neither tag nor digest. It converts the registry to lower
// case, because host names are case-insensitive. Errors have the class fault.Invalid.
func Parse(image, defaultPrefix string) (Name, error) {
	if image == "" {
		return Name{}, fault.New(fault.Invalid, "no image given: name the function's container image")
	}
	if err := checkLength(image); err != nil {
		return Name{}, err
	}
	full := image
	if prefix := strings.TrimRight(defaultPrefix, "/"); prefix != "" && !strings.Contains(image, "/") {
		full = prefix + "/" + image
	}
	named, err := parseName(full)
	if err != nil {
		return Name{}, fault.New(fault.Invalid, "image %q is not a valid image name: %w", image, err)
	}
	name := Name{Repository: named.Name()}
	if d, ok := named.(reference.Digested); ok {
		name.Digest = d.Digest().String()
	}
	if t, ok := named.(reference.Tagged); ok {
		name.Tag = t.Tag()
	} else if name.Digest == "" {
		name.Tag = "latest"
	}
	return name.checkName()
}

// checkLength returns an error if a name exceeds MaxBytes.
func checkLength(image string) error {
	if len(image) > MaxBytes {
		return fault.New(fault.Invalid, "the image's name has %d bytes, and may have up to %d: it begins with %q", len(image),
			MaxBytes, image[:32])
	}
	return nil
}

// checkName returns n, or an error if n is longer than MaxBytes. The canonical name may be too long even if the user's
// name was short enough, because Parse adds a registry and a tag.
func (n Name) checkName() (Name, error) {
	if err := checkLength(n.String()); err != nil {
		return Name{}, err
	}
	return n, nil
}

// IsPrefix reports whether a setting may use prefix as the defaultPrefix of [Parse]. An empty prefix is valid: it
// means that names without a slash belong to docker.io.
func IsPrefix(prefix string) bool {
	_, err := Parse("name", prefix)
	return err == nil
}

// PrefixWanted describes the prefixes that IsPrefix accepts, for error messages about invalid settings.
const PrefixWanted = "a registry and a path, such as " + DefaultPrefix + ", or nothing"

// parseName parses the name of an image and converts its registry to lower case.
func parseName(image string) (reference.Named, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil, err
	}
	registry := reference.Domain(named)
	lower := strings.ToLower(registry)
	if lower == registry {
		return named, nil
	}
	if !strings.ContainsAny(lower, ".:") && lower != "localhost" {
		return nil, fmt.Errorf(
			"in lower case, its registry %s looks like a directory of docker.io: give it with its port or its domain",
			registry,
		)
	}
	return reference.ParseNormalizedNamed(lower + strings.TrimPrefix(image, registry))
}

// WithTag returns n with the given tag and without a digest. If tag is not valid, the error has the class
// fault.Invalid.
func (n Name) WithTag(tag string) (Name, error) {
	named, err := reference.WithName(n.Repository)
	if err != nil {
		return Name{}, fault.New(fault.Invalid, "repository %q is not valid: %w", n.Repository, err)
	}
	if _, err := reference.WithTag(named, tag); err != nil {
		return Name{}, fault.New(fault.Invalid, "tag %q for image %q is neither a tag nor a version constraint: %w", tag,
			n.Repository, err)
	}
	return Name{Repository: n.Repository, Tag: tag}.checkName()
}

// Key returns a map key that is the same for all spellings of an image. It is "repository@digest" if the name contains
// a digest, and otherwise "repository:tag". It omits the tag of a name with a digest, because registries ignore this
// tag.
func (n Name) Key() string {
	if n.Digest != "" {
		return n.Repository + "@" + n.Digest
	}
	return n.Repository + ":" + n.Tag
}

// String returns the whole canonical name.
func (n Name) String() string {
	s := n.Repository
	if n.Tag != "" {
		s += ":" + n.Tag
	}
	if n.Digest != "" {
		s += "@" + n.Digest
	}
	return s
}

// SplitTag splits an image name without a digest into repository and tag. The tag is empty if the name contains no tag.
// The port of a registry is not a tag.
func SplitTag(image string) (repository, tag string) {
	colon := strings.LastIndexByte(image, ':')
	if colon < 0 || strings.Contains(image[colon:], "/") {
		return image, ""
	}
	return image[:colon], image[colon+1:]
}

// Short returns the last path segment and the tag, such as "set-namespace:v0.4.5", for display to users. Images of
// different registries may have the same short name.
func (n Name) Short() string { return Name{Repository: path.Base(n.Repository), Tag: n.Tag}.String() }
