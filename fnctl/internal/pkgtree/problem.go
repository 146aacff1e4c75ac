// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// ReadList reads a ResourceList or YAML documents from a stream. The second result is the reader, which contains the
// functionConfig of the ResourceList. The argument what names the stream in errors, such as "standard input".
func ReadList(in io.Reader, what string) ([]*yaml.RNode, *kio.ByteReader, error) {
	data, err := io.ReadAll(io.LimitReader(in, MaxPackageBytes+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("read %s: %w", what, err)
	case len(data) > MaxPackageBytes:
		return nil, nil, fmt.Errorf("read %s: it has more than %d MiB", what, MaxPackageBytes>>20)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil, fmt.Errorf("read %s: it is empty", what)
	}
	reader := &kio.ByteReader{Reader: bytes.NewReader(data), PreserveSeqIndent: true, WrapBareSeqNode: true}
	resources, err := reader.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("read %s%w", what, parseProblem(data))
	}
	return resources, reader, nil
}

// Parse returns the resources of a file's content, without annotations that name the file.
func Parse(data []byte) ([]*yaml.RNode, error) {
	reader := kio.ByteReader{Reader: bytes.NewReader(data), OmitReaderAnnotations: true, DisableUnwrapping: true}
	return reader.Read()
}

// ReadConfig returns the configuration of a function from a file, which must contain a single resource.
func ReadConfig(name string, data []byte) (*yaml.RNode, error) {
	resources, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s%w", name, parseProblem(data))
	}
	if len(resources) != 1 {
		return nil, fmt.Errorf("%s must have one resource, but has %d", name, len(resources))
	}
	return resources[0], nil
}

// parserError matches a syntax error of the YAML library, and captures line and reason. Lines count from 1.
var parserError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// parseProblem returns the line and the reason of kyaml's failure to read a file, such as ":3: reason". Callers append
// this text to the file's name. Unlike kyaml's errors, it never contains the file's content, which may be secret.
func parseProblem(data []byte) error {
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	line := 0 // number of lines before the document
	for {
		end := separator.FindStringIndex(text)
		document := text
		if end != nil {
			document = text[:end[0]+1]
		}
		if at, reason := problemOf(document); reason != "" {
			if strings.Contains(document, "{{") {
				reason += " (it looks like a template, of Helm for example)"
			}
			return fmt.Errorf(":%d: %s", line+at, reason)
		}
		if end == nil {
			return errors.New(": it has no Kubernetes resources")
		}
		if rest := strings.TrimSpace(text[end[0]+len("\n---") : end[1]]); rest != "" && rest[0] != '#' {
			return fmt.Errorf(":%d: only a comment may follow --- on its line", line+strings.Count(document, "\n")+1)
		}
		line += strings.Count(text[:end[1]], "\n")
		text = text[end[1]:]
	}
}

// problemOf returns the line and the reason if kyaml cannot read a YAML document. Otherwise, the reason is empty.
func problemOf(document string) (line int, reason string) {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(document), &node); err != nil {
		found := parserError.FindStringSubmatch(err.Error())
		line, _ = strconv.Atoi(found[1])
		reason = found[2]
		if strings.HasPrefix(reason, "unknown anchor") || strings.HasPrefix(reason, "anchor") {
			reason = "an alias names no anchor before it"
		}
		return max(line, 1), reason
	}
	if len(node.Content) == 0 {
		return 0, ""
	}
	root := node.Content[0]
	if root.Kind != yaml.MappingNode {
		if root.Kind == yaml.SequenceNode {
			return 0, ""
		}
		return root.Line, "it is text, not a resource with apiVersion, kind and metadata"
	}
	resource := yaml.NewRNode(root)
	for _, field := range []string{"metadata", "annotations"} {
		value := resource.Field(field)
		if value == nil || value.Value.IsNil() || value.Value.YNode().Tag == yaml.NodeTagNull {
			return 0, ""
		}
		if value.Value.YNode().Kind != yaml.MappingNode {
			return value.Key.YNode().Line, field + " must be a map"
		}
		resource = value.Value
	}
	return 0, ""
}
