package pkgtree

import (
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// sameResources reports whether resources say the same as they did when read.
func sameResources(before, after []*yaml.RNode) bool {
	return slices.EqualFunc(before, after, func(b, a *yaml.RNode) bool {
		b, err := Strip(b)
		if err != nil {
			return false
		}
		a, err = Strip(a)
		return err == nil && sameNode(b.YNode(), a.YNode())
	})
}

// sameNode compares values, the order of fields and comments. It ignores quotes,
// indentation and the like: a function that passes a resource through its own YAML
// library has not changed it.
func sameNode(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.ShortTag() == b.ShortTag() && sameValue(a, b) &&
		a.Anchor == b.Anchor &&
		a.HeadComment == b.HeadComment && a.LineComment == b.LineComment && a.FootComment == b.FootComment &&
		slices.EqualFunc(a.Content, b.Content, sameNode)
}

// sameValue compares scalars. All spellings of null are the same.
func sameValue(a, b *yaml.Node) bool {
	return a.Value == b.Value || a.ShortTag() == yaml.NodeTagNull
}
