// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"bytes"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// statusField is the field of a resource that tools write. The author of the resource writes all other fields.
const statusField = "status"

// spliceChanges replaces only the status in a file's text. The other text keeps the author's format, which kyaml would
// change. It returns true on success, and false if there are several resources or other changes.
func spliceChanges(data []byte, before, after []*yaml.RNode) ([]byte, bool) {
	if len(before) != 1 || len(after) != 1 || !sameResources(withoutStatus(before[0]), withoutStatus(after[0])) {
		return nil, false
	}
	status := after[0].Field(statusField)
	if status == nil || before[0].YNode().Style&yaml.FlowStyle != 0 {
		return nil, false
	}
	block, err := encodeStatus(status.Value, after[0].GetAnnotations()[kioutil.SeqIndentAnnotation])
	if err != nil {
		return nil, false
	}
	head, tail := cutStatus(strings.ReplaceAll(string(data), "\r\n", "\n"))
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	spliced := []byte(head + block + tail)
	return spliced, isStill(spliced, after)
}

// withoutStatus returns a copy of a resource without its status, as a list for sameResources.
func withoutStatus(r *yaml.RNode) []*yaml.RNode {
	r = r.Copy()
	_ = r.PipeE(yaml.FieldClearer{Name: statusField})
	return []*yaml.RNode{r}
}

func encodeStatus(value *yaml.RNode, style string) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoderWithOptions(&out, &yaml.EncoderOptions{SeqIndent: yaml.SequenceIndentStyle(style)})
	err := encoder.Encode(map[string]*yaml.Node{statusField: value.YNode()})
	return out.String(), err
}

// cutStatus returns the text before and after the status of a resource. Without a status, it splits the text at the
// place where kpt would write a status. This place is before the comments at the end of the file.
func cutStatus(text string) (head, tail string) {
	var fresh yaml.Node
	if yaml.Unmarshal([]byte(text), &fresh) != nil || len(fresh.Content) != 1 {
		return text, ""
	}
	lines := strings.SplitAfter(text, "\n")
	fields := fresh.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i].Value != statusField {
			continue
		}
		from, to := fields[i].Line-1, lastComments(lines, fresh.FootComment+"\n"+fields[i].FootComment)
		if i+2 < len(fields) {
			to = fields[i+2].Line - 1 - strings.Count(fields[i+2].HeadComment, "\n")
			if fields[i+2].HeadComment != "" {
				to--
			}
		}
		return strings.Join(lines[:from], ""), strings.Join(lines[to:], "")
	}
	end := lastComments(lines, fresh.FootComment)
	return strings.Join(lines[:end], ""), strings.Join(lines[end:], "")
}

// lastComments returns the number of lines before a file's last comments, whose text is in comments.
func lastComments(lines []string, comments string) int {
	left := 0
	for line := range strings.Lines(comments) {
		if strings.TrimSpace(line) != "" {
			left++
		}
	}
	if left == 0 {
		return len(lines)
	}
	end := len(lines)
	for ; end > 0; end-- {
		switch line := strings.TrimSpace(lines[end-1]); {
		case line == "":
		case left > 0 && strings.HasPrefix(line, "#"):
			left--
		default:
			return end
		}
	}
	return end
}

// isStill reports whether a file's changed text still contains exactly the expected resources.
func isStill(data []byte, want []*yaml.RNode) bool {
	got, err := Parse(data)
	return err == nil && sameResources(got, want)
}
