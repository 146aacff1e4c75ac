// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Apply applies a patch of `git diff` to files, and returns all files by path. All lines must match exactly.
func Apply(files map[string][]byte, patch string) (map[string][]byte, error) {
	p := patcher{files: maps.Clone(files), lines: strings.SplitAfter(patch, "\n")}
	for p.next < len(p.lines) {
		line := p.nextLine()
		if from, ok := strings.CutPrefix(line, "rename from "); ok {
			to := strings.TrimPrefix(p.nextLine(), "rename to ")
			from, to = pathOf(from), pathOf(to)
			p.files[to] = p.files[from]
			delete(p.files, from)
			p.renamed = to
		}
		if old, ok := strings.CutPrefix(line, "--- "); ok {
			if err := p.applyFile(pathOf(old), pathOf(strings.TrimPrefix(p.nextLine(), "+++ "))); err != nil {
				return nil, err
			}
		}
	}
	return p.files, nil
}

// pathOf returns the path in a header line of a patch, without the prefix a/ or b/. It is empty for /dev/null.
func pathOf(header string) string {
	header, _, _ = strings.Cut(strings.TrimRight(header, "\r\n"), "\t")
	if path, err := strconv.Unquote(header); err == nil {
		header = path
	}
	if header == missing {
		return ""
	}
	if len(header) > 2 && (header[:2] == "a/" || header[:2] == "b/") {
		return header[2:]
	}
	return header
}

// patcher applies a patch to files.
type patcher struct {
	files   map[string][]byte
	lines   []string
	next    int
	renamed string // new path of the last renamed file
}

// nextLine returns the next line of the patch, or an empty string at the end of the patch.
func (p *patcher) nextLine() string {
	if p.next >= len(p.lines) {
		return ""
	}
	p.next++
	return p.lines[p.next-1]
}

// applyFile applies the hunks of one file, whose path may change from before to after. An empty path means that the
// file does not exist.
func (p *patcher) applyFile(before, after string) error {
	if p.renamed != "" && p.renamed == after {
		before = after
	}
	old := strings.SplitAfter(string(p.files[before]), "\n")
	var content strings.Builder
	done := 0 // number of lines of old that were copied or removed
	for p.next < len(p.lines) && strings.HasPrefix(p.lines[p.next], "@@ ") {
		start, err := hunkStart(p.nextLine())
		if err != nil || start < done || start > len(old) {
			return fmt.Errorf("the patch does not fit %s", before)
		}
		content.WriteString(strings.Join(old[done:start], ""))
		if done, err = p.applyHunk(&content, old, start); err != nil {
			return fmt.Errorf("the patch does not fit %s: line %d differs", before, done+1)
		}
	}
	content.WriteString(strings.Join(old[done:], ""))
	delete(p.files, before)
	if after != "" {
		p.files[after] = []byte(content.String())
	}
	return nil
}

// hunkStart returns the number of old lines before a hunk, from its header, such as "@@ -3,4 +3,5 @@".
func hunkStart(header string) (int, error) {
	fields := strings.Fields(header)
	if len(fields) < 3 {
		return 0, errors.New("no hunk")
	}
	number, length, hasLength := strings.Cut(strings.TrimPrefix(fields[1], "-"), ",")
	start, err := strconv.Atoi(number)
	if hasLength && length == "0" {
		return start, err // the hunk inserts lines after this line
	}
	return start - 1, err
}

// applyHunk appends the new lines of a hunk to content, and checks its old lines against the file. done is the
// number of old lines before the hunk. The result is the number of old lines up to the end of the hunk.
func (p *patcher) applyHunk(content *strings.Builder, old []string, done int) (int, error) {
	for p.next < len(p.lines) && p.lines[p.next] != "" && strings.ContainsRune(" +-", rune(p.lines[p.next][0])) &&
		!strings.HasPrefix(p.lines[p.next], "--- ") {
		line := p.nextLine()
		text := line[1:]
		if p.next < len(p.lines) && strings.HasPrefix(p.lines[p.next], `\`) { // no newline at the end of the file
			p.next++
			text = strings.TrimSuffix(text, "\n")
		}
		if line[0] != '+' {
			if done >= len(old) || old[done] != text {
				return done, errors.New("another line")
			}
			done++
		}
		if line[0] != '-' {
			content.WriteString(text)
		}
	}
	return done, nil
}
