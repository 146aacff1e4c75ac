// SPDX-License-Identifier: Apache-2.0

// Package tagconstraint selects the tag of an image for an evaluation request. The request contains a tag, or a
// version constraint such as "~0.4", which selects the highest matching tag.
package tagconstraint

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Constraint is a requested tag, or a constraint on versions. The zero Constraint requests no tag: the image keeps the
// tag in its name.
type Constraint struct {
	text     string
	versions *semver.Constraints
}

// maxBytes is the maximum length of a constraint in bytes. It is enough for dozens of versions.
const maxBytes = 1 << 10

// tagPattern matches the tags that registries accept.
var tagPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// Parse parses a tag, or a constraint on semantic versions in the syntax of Masterminds/semver. If s is empty, the
// Constraint requests no tag. A partial version such as "v0.4" is a tag and not a constraint. This is because the
// publishers of functions move such a tag to the latest patch version. Errors have the class fault.Invalid.
func Parse(s string) (Constraint, error) {
	if s == "" {
		return Constraint{}, nil
	}
	if len(s) > maxBytes {
		return Constraint{}, fault.New(fault.Invalid,
			"the tag has %d bytes, and a version constraint may have up to %d: it begins with %q", len(s), maxBytes, s[:32])
	}
	if _, err := semver.NewVersion(s); err == nil && tagPattern.MatchString(s) {
		return Constraint{text: s}, nil
	}
	versions, err := semver.NewConstraint(s)
	if err == nil {
		return Constraint{text: s, versions: versions}, nil
	}
	if tagPattern.MatchString(s) {
		return Constraint{text: s}, nil
	}
	return Constraint{}, fault.New(fault.Invalid, "tag %q is neither a tag nor a version constraint: %w", s, err)
}

// IsZero reports whether c requests no tag.
func (c Constraint) IsZero() bool { return c.text == "" }

// Exact returns the requested tag. It returns false if c is empty or a constraint on versions. For an exact tag,
// callers need not list the tags of the image.
func (c Constraint) Exact() (tag string, ok bool) {
	return c.text, c.text != "" && c.versions == nil
}

// String returns c as its author wrote it.
func (c Constraint) String() string { return c.text }

// Highest returns the highest tag that satisfies c, or false if no tag satisfies c. If c is a constraint on versions,
// only semantic versions satisfy it. Tags of signatures and attestations ("sha256-…") and of commit builds ("…-git-…")
// do not count as semantic versions.
func (c Constraint) Highest(tags []string) (tag string, ok bool) {
	if c.versions == nil {
		return c.text, slices.Contains(tags, c.text)
	}
	var best *semver.Version
	for _, t := range tags {
		v := release(t)
		if v != nil && c.versions.Check(v) && (best == nil || compare(v, best) > 0) {
			best = v
		}
	}
	if best == nil {
		return "", false
	}
	return best.Original(), true
}

// release parses a tag as a semantic version. It returns nil for other tags, including the tags of signatures and of
// commit builds.
func release(tag string) *semver.Version {
	if strings.HasPrefix(tag, "sha256-") || strings.Contains(tag, "-git-") {
		return nil
	}
	v, _ := semver.NewVersion(tag) // nil after an error
	return v
}

// compare orders the versions of two tags. If the versions are equal, the tag with more numbers is higher. For example,
// "v1.0.0" is higher than "v1", because "v1.0.0" is moved less often. Different tags are never equal, so that the
// result does not depend on the order of the tags.
func compare(a, b *semver.Version) int {
	return cmp.Or(a.Compare(b), cmp.Compare(strings.Count(a.Original(), "."), strings.Count(b.Original(), ".")),
		cmp.Compare(a.Original(), b.Original()))
}
