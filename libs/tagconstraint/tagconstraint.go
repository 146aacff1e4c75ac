// SPDX-License-Identifier: Apache-2.0

// Package tagconstraint parses the tag field of an evaluation, and selects a matching tag.
package tagconstraint

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Constraint is a request for a tag. The zero Constraint requests nothing: the image keeps its tag.
type Constraint struct {
	text     string
	versions *semver.Constraints
}

// maxBytes is the maximum length of a constraint: some dozens of versions.
const maxBytes = 1 << 10

// tagPattern matches the tags that registries accept.
var tagPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// Parse parses s: nothing, a version, a constraint on semantic versions in the syntax of Masterminds/semver, or any
// other literal tag. A version means itself, even a partial version: functions publish "v0.4" as a tag that follows
// their patches. A text that is neither a constraint nor a possible tag is an error of class fault.Invalid.
func Parse(s string) (Constraint, error) {
	if s == "" {
		return Constraint{}, nil
	}
	if len(s) > maxBytes {
		return Constraint{}, fault.New(
			fault.Invalid,
			"the tag has %d bytes, and a version constraint may have up to %d: it begins with %q",
			len(s),
			maxBytes,
			s[:32],
		)
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

// IsZero reports whether c requests nothing.
func (c Constraint) IsZero() bool { return c.text == "" }

// Exact returns the tag of a constraint that allows a single tag. Callers then need not list tags.
func (c Constraint) Exact() (tag string, ok bool) {
	return c.text, c.text != "" && c.versions == nil
}

// String returns c as it was written.
func (c Constraint) String() string { return c.text }

// Highest returns the highest of tags that c allows. Tags that are no semantic
// versions, signatures and attestations ("sha256-…") and builds of commits
// ("…-git-…") are never chosen by a constraint.
func (c Constraint) Highest(tags []string) (tag string, ok bool) {
	if c.versions == nil {
		return c.text, slices.Contains(tags, c.text)
	}
	var best *semver.Version
	for _, t := range tags {
		v := release(t)
		if v == nil || !c.versions.Check(v) {
			continue
		}
		if best == nil || compare(v, best) > 0 {
			best = v
		}
	}
	if best == nil {
		return "", false
	}
	return best.Original(), true
}

// release returns tag as a version, or nil if a constraint must not choose it.
func release(tag string) *semver.Version {
	if strings.HasPrefix(tag, "sha256-") || strings.Contains(tag, "-git-") {
		return nil
	}
	v, err := semver.NewVersion(tag)
	if err != nil {
		return nil
	}
	return v
}

// compare orders versions, and spellings of the same version, so that the choice does not depend on the order of the
// list: the most exact spelling is the highest, since "v1.2.0" moves less than "v1".
func compare(a, b *semver.Version) int {
	return cmp.Or(
		a.Compare(b),
		cmp.Compare(strings.Count(a.Original(), "."), strings.Count(b.Original(), ".")),
		cmp.Compare(a.Original(), b.Original()),
	)
}
