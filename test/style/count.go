// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"unicode"
)

// counts maps the name of each discouraged form to its count.
type counts map[string]*count

func (c counts) countOf(f form) *count {
	if c[f.name] == nil {
		c[f.name] = &count{}
	}
	return c[f.name]
}

var directive = regexp.MustCompile(`SPDX|nolint|^go:|^\s*$`)

// addGo counts the discouraged forms in the comments and names of a Go file.
func (c counts) addGo(src []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", src, parser.ParseComments)
	if err != nil {
		return err
	}
	lines := strings.Split(string(src), "\n")
	for _, group := range file.Comments {
		for _, comment := range group.List {
			c.addComment(comment.Text, startsLine(lines, set.Position(comment.Pos())))
		}
	}
	for _, decl := range file.Decls {
		c.addNames(decl)
	}
	return nil
}

// startsLine reports whether a comment stands on its own line, with only white space before the comment.
func startsLine(lines []string, p token.Position) bool {
	return strings.TrimSpace(lines[p.Line-1][:p.Column-1]) == ""
}

func (c counts) addComment(text string, alone bool) {
	text = strings.TrimPrefix(text, "//")
	if directive.MatchString(text) {
		return
	}
	text = strings.TrimSpace(text)
	for _, f := range commentForms {
		c.countOf(f).addUnit(f, text)
	}
	if !alone {
		c.countOf(fragment).addUnit(fragment, text)
	}
}

func (c counts) addNames(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if name := d.Name.Name; unicode.IsLower(rune(name[0])) && name != "main" && name != "init" {
			c.countOf(oneWordFunction).addUnit(oneWordFunction, name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if t, ok := spec.(*ast.TypeSpec); ok && unicode.IsLower(rune(t.Name.Name[0])) {
				c.countOf(participleType).addUnit(participleType, t.Name.Name)
			}
		}
	}
}

var fence = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")

// addDocument counts the discouraged forms in the text of a Markdown file. It ignores code.
func (c counts) addDocument(text string) {
	text = fence.ReplaceAllString(text, "")
	for _, f := range documentForms {
		n := c.countOf(f)
		n.of += len(strings.Fields(text))
		n.found += len(f.pattern.FindAllString(text, -1))
	}
}

// area matches the beginning of a commit's subject: "pool: ", "pool, kube: " or "status page: ".
var area = regexp.MustCompile(`^[^: ]+( [^: ]+)?(, [^: ]+)*: `)

// addSubject counts the discouraged forms in the subject of a commit. A good subject is "area: verb …".
func (c counts) addSubject(subject string) {
	prefix := area.FindString(subject)
	plain := c.countOf(plainSubject)
	plain.of++
	if prefix == "" {
		plain.found++
	}
	c.countOf(nounSubject).addUnit(nounSubject, strings.ToLower(strings.TrimPrefix(subject, prefix)))
}
