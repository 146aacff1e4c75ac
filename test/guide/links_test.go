// SPDX-License-Identifier: Apache-2.0

package guide_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	links    = regexp.MustCompile(`\]\(<?([^)>\s]+)>?\)`)
	headings = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	// code is text in which nothing is a link.
	code = regexp.MustCompile("(?s)\n```.*?\n```|`[^`\n]*`")
	// words are links in a heading, of which only the text is seen.
	words = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinks checks that links between files of the repository lead to a file, and to a heading in it. (Links to other
// places are not called: their servers are not ours.)
func TestLinks(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others",
		"--exclude-standard", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for document := range strings.Lines(string(out)) {
		document = strings.TrimSpace(document)
		data, err := os.ReadFile(filepath.Join(root, document))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links.FindAllStringSubmatch(code.ReplaceAllString(string(data), ""), -1) {
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			checked++
			if problem := follows(document, link[1]); problem != "" {
				t.Errorf("%s links to %s: %s", document, link[1], problem)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links found", checked)
	}
}

// follows returns what is wrong with a link of a document; empty if nothing is.
func follows(document, link string) string {
	file, anchor, _ := strings.Cut(link, "#")
	to := document
	if file != "" {
		to = path.Join(path.Dir(document), file)
	}
	info, err := os.Stat(filepath.Join(root, to))
	if err != nil || !filepath.IsLocal(to) {
		return "there is no such file"
	}
	if anchor == "" {
		return ""
	}
	if info.IsDir() {
		to = path.Join(to, "README.md")
	}
	data, err := os.ReadFile(filepath.Join(root, to))
	if err != nil {
		return err.Error()
	}
	text := regexp.MustCompile("(?s)\n```.*?\n```").ReplaceAllString(string(data), "")
	for _, heading := range headings.FindAllStringSubmatch(text, -1) {
		if anchorOf(heading[1]) == anchor {
			return ""
		}
	}
	return "there is no such heading"
}

// anchorOf returns the anchor that GitHub gives to a heading.
func anchorOf(heading string) string {
	var anchor strings.Builder
	for _, r := range strings.ToLower(words.ReplaceAllString(heading, "$1")) {
		switch {
		case r == ' ':
			anchor.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			anchor.WriteRune(r)
		}
	}
	return anchor.String()
}
