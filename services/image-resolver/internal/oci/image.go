// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Image is what a container of an image would run, and how.
type Image struct {
	// Digest is that of the platform's manifest.
	Digest string
	// IndexDigest is that of the multi-platform index, or empty.
	IndexDigest string
	Platform    Platform
	Entrypoint  []string
	Cmd         []string
	// Env is the environment, as KEY=value.
	Env        []string
	WorkingDir string
	User       string
	Labels     map[string]string
	// Size is the compressed size of all layers, in bytes.
	Size int64
	// PullCredentials reports whether the registry wanted credentials.
	PullCredentials bool
}

// Command is what a container runs: Entrypoint followed by Cmd.
func (i *Image) Command() []string { return slices.Concat(i.Entrypoint, i.Cmd) }

// TopDigest is the digest that a tag of the image points at.
func (i *Image) TopDigest() string {
	if i.IndexDigest != "" {
		return i.IndexDigest
	}
	return i.Digest
}

// MemoryBytes is what the image takes in memory.
func (i *Image) MemoryBytes() int64 {
	const fields, text, pair = 400, 16, 64
	n := fields + len(i.Digest) + len(i.IndexDigest) + len(i.WorkingDir) + len(i.User) +
		len(i.Platform.OS) + len(i.Platform.Architecture) + len(i.Platform.Variant)
	for _, list := range [][]string{i.Entrypoint, i.Cmd, i.Env} {
		for _, s := range list {
			n += text + len(s)
		}
	}
	for k, v := range i.Labels {
		n += pair + len(k) + len(v)
	}
	return int64(n)
}

// ParseConfig returns the image that m and its configuration describe. An image
// with nothing to run is an error, of class fault.Precondition as all others.
func ParseConfig(m *Manifest, config []byte) (*Image, error) {
	var file struct {
		platform
		Config struct {
			Entrypoint, Cmd, Env list[string]
			WorkingDir, User     string
			Labels               texts
		} `json:"config"`
	}
	if err := json.Unmarshal(config, &file); err != nil {
		return nil, invalid("the image's configuration "+m.Config, err)
	}
	c := file.Config
	if len(c.Entrypoint)+len(c.Cmd) == 0 {
		return nil, fault.New(
			fault.Precondition,
			"the image has neither Entrypoint nor Cmd, so there is nothing to run: set ENTRYPOINT in its Dockerfile",
		)
	}
	image := &Image{
		Digest:     m.Digest,
		Platform:   Platform(file.platform),
		Entrypoint: c.Entrypoint,
		Cmd:        c.Cmd,
		Env:        c.Env,
		WorkingDir: c.WorkingDir,
		User:       c.User,
		Labels:     c.Labels,
		Size:       m.LayerBytes,
	}
	if err := image.check(); err != nil {
		return nil, err
	}
	return image, nil
}

// check rejects a configuration with a zero byte, which no program can get: what is behind it would be taken for
// something else wherever such a byte ends a text.
func (i *Image) check() error {
	texts := slices.Concat(i.Entrypoint, i.Cmd, i.Env, []string{i.WorkingDir, i.User})
	if !slices.ContainsFunc(texts, func(text string) bool { return strings.ContainsRune(text, 0) }) {
		return nil
	}
	return fault.New(fault.Precondition, "the image's configuration has a zero byte in its command, its environment, "+
		"its working directory or its user: build and push the image again")
}

// Platform is an operating system and a processor architecture, in Go's spelling.
type Platform struct {
	OS, Architecture, Variant string
}

// ParsePlatform reads "os/architecture" or "os/architecture/variant".
func ParsePlatform(s string) (Platform, error) {
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return Platform{}, fmt.Errorf("platform %q is not os/architecture or os/architecture/variant", s)
	}
	p := Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}

// Platforms are platforms to choose from, the preferred one first.
type Platforms []Platform

// ParsePlatforms reads platforms, separated by commas.
func ParsePlatforms(s string) (Platforms, error) {
	var all Platforms
	for text := range strings.SplitSeq(s, ",") {
		p, err := ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// String returns the platforms as [ParsePlatforms] reads them.
func (p Platforms) String() string {
	texts := make([]string, len(p))
	for i, platform := range p {
		texts[i] = platform.String()
	}
	return strings.Join(texts, ",")
}

// For returns the platforms for a request that names one, or none: what it leaves out is as the
// preferred one's.
func (p Platforms) For(named Platform) Platforms {
	if named == (Platform{}) {
		return p
	}
	return Platforms{named.Or(p[0])}
}

// String returns the platform as [ParsePlatform] reads it.
func (p Platform) String() string {
	s := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}

// Or returns p with what it leaves out from other. A variant belongs to its
// architecture.
func (p Platform) Or(other Platform) Platform {
	if p.Architecture == "" {
		p.Architecture, p.Variant = other.Architecture, other.Variant
	}
	p.OS = cmp.Or(p.OS, other.OS)
	return p
}

// serves reports whether an image for p runs on want.
func (p Platform) serves(want Platform) bool {
	return p.OS == want.OS && p.Architecture == want.Architecture && (want.Variant == "" || p.Variant == want.Variant)
}
