// SPDX-License-Identifier: Apache-2.0

package pkgtree

import (
	"bytes"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
)

// separator matches the end of a YAML document, as in kyaml.
var separator = regexp.MustCompile(`\n---.*\n`)

// comment is a document with comments and no resource, such as a licence at the top of a file.
// Functions never see it.
type comment struct {
	text string
	// index is the index of the resource after the comment.
	index int
}

// findComments returns the documents of a file that contain comments and no resource. It returns none for JSON files,
// because JSON has no comments.
func findComments(file string, data []byte) []comment {
	if path.Ext(file) == ".json" || !bytes.Contains(data, []byte("#")) {
		return nil
	}
	var found []comment
	index := 0
	for _, text := range separator.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), -1) {
		switch {
		case hasResource(text):
			index++
		case strings.Contains(text, "#"):
			found = append(found, comment{text: strings.TrimRight(text, "\n") + "\n", index: index})
		}
	}
	return found
}

// hasResource reports whether kyaml finds a resource in a document.
func hasResource(document string) bool {
	reader := kio.ByteReader{Reader: strings.NewReader(document), OmitReaderAnnotations: true, DisableUnwrapping: true}
	resources, err := reader.Read()
	return err != nil || len(resources) > 0
}
