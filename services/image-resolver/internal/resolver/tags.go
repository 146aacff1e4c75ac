package resolver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// order returns tags with versions first and the highest first, others by name.
func order(tags []string) []string {
	versions := make(map[string]*semver.Version, len(tags))
	for _, tag := range tags {
		if v, err := semver.NewVersion(tag); err == nil {
			versions[tag] = v
		}
	}
	return slices.SortedFunc(slices.Values(tags), func(a, b string) int {
		va, vb := versions[a], versions[b]
		switch {
		case va != nil && vb != nil:
			return cmp.Or(vb.Compare(va), cmp.Compare(a, b))
		case va != nil:
			return -1
		case vb != nil:
			return 1
		default:
			return cmp.Compare(a, b)
		}
	})
}

// offered is how many tags a message names.
const offered = 5

// offer says what tags there are.
func offer(tags []string) string {
	switch {
	case len(tags) == 0:
		return "it has no tags"
	case len(tags) <= offered:
		return "it has " + strings.Join(tags, ", ")
	default:
		return fmt.Sprintf("the highest of its %d are %s", len(tags), strings.Join(tags[:offered], ", "))
	}
}
