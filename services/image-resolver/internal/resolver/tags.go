// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// orderTags returns tags with the versions first, from the highest to the lowest, and then all further tags by name.
func orderTags(tags []string) []string {
	var versions []*semver.Version
	var others []string
	for _, tag := range tags {
		if v, err := semver.NewVersion(tag); err == nil {
			versions = append(versions, v)
		} else {
			others = append(others, tag)
		}
	}
	slices.SortFunc(versions, func(a, b *semver.Version) int {
		return cmp.Or(b.Compare(a), cmp.Compare(a.Original(), b.Original()))
	})
	slices.Sort(others)
	ordered := make([]string, 0, len(tags))
	for _, v := range versions {
		ordered = append(ordered, v.Original())
	}
	return append(ordered, others...)
}

// offered is the maximum number of tags in a message.
const offered = 5

func offerTags(tags []string) string {
	switch {
	case len(tags) == 0:
		return "it has no tags"
	case len(tags) <= offered:
		return "it has " + strings.Join(tags, ", ")
	default:
		return fmt.Sprintf("the highest of its %d are %s", len(tags), strings.Join(tags[:offered], ", "))
	}
}
