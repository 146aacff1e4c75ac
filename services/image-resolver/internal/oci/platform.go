// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Platform is an operating system and a processor architecture, such as linux and amd64, spelled as in Go. The
// variant of the architecture, such as v7, may be empty.
type Platform struct {
	OS, Architecture, Variant string
}

// ParsePlatform parses a platform of the form "os/architecture" or "os/architecture/variant".
func ParsePlatform(s string) (Platform, error) {
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return Platform{}, fmt.Errorf("platform %q is not os/architecture or os/architecture/variant", s)
	}
	p := Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p.normalize(), nil
}

// architectures maps other names of architectures, such as x86_64, to the names in Go.
var architectures = map[string]Platform{
	"x86_64": {Architecture: "amd64"}, "x86-64": {Architecture: "amd64"}, "aarch64": {Architecture: "arm64"},
	"armhf": {Architecture: "arm", Variant: "v7"}, "armel": {Architecture: "arm", Variant: "v6"},
	"i386": {Architecture: "386"}, "i486": {Architecture: "386"}, "i586": {Architecture: "386"},
	"i686": {Architecture: "386"}, "x86": {Architecture: "386"}, "ppc64el": {Architecture: "ppc64le"},
}

// baseVariants contains the lowest variant of an architecture. A platform that names no variant means this variant.
var baseVariants = map[string]string{"amd64": "v1", "arm64": "v8"}

// normalize returns the platform in the spelling of Go, because the labels of Kubernetes nodes have this spelling.
func (p Platform) normalize() Platform {
	p.OS, p.Architecture, p.Variant = strings.ToLower(p.OS), strings.ToLower(p.Architecture), strings.ToLower(p.Variant)
	if known, ok := architectures[p.Architecture]; ok {
		p.Architecture = known.Architecture
		p.Variant = cmp.Or(p.Variant, known.Variant)
	}
	if p.Variant != "" && p.Variant[0] >= '0' && p.Variant[0] <= '9' {
		p.Variant = "v" + p.Variant
	}
	if p.Variant == baseVariants[p.Architecture] {
		p.Variant = ""
	}
	return p
}

// IsZero reports whether the platform names neither an operating system nor an architecture.
func (p Platform) IsZero() bool { return p.OS == "" && p.Architecture == "" }

// String returns the platform in the form that [ParsePlatform] parses.
func (p Platform) String() string {
	s := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}

func (p Platform) runsOn(want Platform) bool {
	return p.OS == want.OS && p.Architecture == want.Architecture && (want.Variant == "" || p.Variant == want.Variant)
}

// Platforms are the platforms from which an image is chosen, in order of preference.
type Platforms []Platform

// ParsePlatforms parses a comma-separated list of platforms.
func ParsePlatforms(s string) (Platforms, error) {
	var all Platforms
	for text := range strings.SplitSeq(s, ",") {
		p, err := ParsePlatform(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// String returns the platforms in the form that [ParsePlatforms] parses.
func (p Platforms) String() string {
	texts := make([]string, len(p))
	for i, platform := range p {
		texts[i] = platform.String()
	}
	return strings.Join(texts, ",")
}

// Accept reports whether an image for the given platform runs on a platform of p. It accepts images that name no
// platform.
func (p Platforms) Accept(named Platform) bool {
	return named.IsZero() || slices.ContainsFunc(p, named.runsOn)
}
