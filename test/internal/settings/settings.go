// SPDX-License-Identifier: Apache-2.0

// Package settings generates the tables of settings in docs/configuration.md. It reads the configuration structs in the
// source of the programs. The doc comments of the fields become the text of the tables.
package settings

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Setting is a setting of a program, from a field of its configuration struct.
type Setting struct {
	field string
	// owner is the struct's name, with its package.
	owner string
	// Variable is the name of the environment variable.
	Variable string
	// Type is the type of the value: text, number, bytes, duration, boolean or list.
	Type string
	// Default is the value if the variable is not set. It may be an empty text or list.
	Default string
	// Meaning is the doc comment of the field, in Markdown.
	Meaning string
}

// Group is a group of settings that share a table, such as the settings of a program.
type Group struct {
	Name string
	// dir is the directory of the package with the configuration struct, relative to the root of the repository.
	// structure is the name of the struct.
	dir, structure string
}

// Groups are all groups of settings. Each group is a table in the document.
var Groups = []Group{
	{"gateway", "services/gateway/gateway", "Config"},
	{"sandboxes", "services/function-runner/localrunner", "SandboxSettings"},
	{"pod-manager", "services/pod-manager/podmanager", "Config"},
	{"image-resolver", "services/image-resolver/imageresolver", "Config"},
	{"every program", "libs/servermain", "Settings"},
}

// Settings returns the settings of a group in the order of the struct's fields. root is the root of the repository.
func (g Group) Settings(root string) ([]Setting, error) {
	found, err := structFields(root, g.dir, g.structure, "FNR")
	if err != nil {
		return nil, fmt.Errorf("read the settings of %s: %w", g.Name, err)
	}
	variables := map[string]string{}
	for _, s := range found {
		variables[s.field] = s.Variable
	}
	for i := range found {
		found[i].Meaning = fieldName.ReplaceAllStringFunc(found[i].Meaning, func(name string) string {
			if variable := variables[name]; variable != "" {
				return "`" + variable + "`"
			}
			return name
		})
	}
	return found, nil
}

// structFields returns the settings in a configuration struct. Their environment variables begin with prefix.
func structFields(root, dir, name, prefix string) ([]Setting, error) {
	types, err := parseStructs(filepath.Join(root, dir))
	if err != nil {
		return nil, err
	}
	if types[name] == nil {
		return nil, fmt.Errorf("%s has no struct %s", dir, name)
	}
	var found []Setting
	for _, field := range types[name].Fields.List {
		tag := tagOf(field)
		if tag.Get("ignored") == "true" {
			continue
		}
		nested, err := nestedFields(root, dir, types, field, prefix)
		if err != nil {
			return nil, err
		}
		if nested != nil {
			found = append(found, nested...)
			continue
		}
		for _, ident := range field.Names {
			s := newSetting(prefix, ident.Name, field)
			s.owner = filepath.Base(dir) + "." + name
			found = append(found, s)
		}
	}
	return found, nil
}

// nestedFields returns the settings of a field whose type is another configuration struct. This struct belongs to the
// same package or to libs. If the field has another type, the result is nil.
func nestedFields(
	root, dir string, types map[string]*ast.StructType, field *ast.Field, prefix string,
) ([]Setting, error) {
	if len(field.Names) == 1 {
		prefix = variableOf(prefix, field.Names[0].Name, tagOf(field))
	}
	switch typ := field.Type.(type) {
	case *ast.Ident:
		if types[typ.Name] != nil {
			return structFields(root, dir, typ.Name, prefix)
		}
	case *ast.SelectorExpr:
		if len(field.Names) == 0 || typ.Sel.Name == "Config" {
			return structFields(root, "libs/"+typ.X.(*ast.Ident).Name, typ.Sel.Name, prefix)
		}
	}
	return nil, nil
}

func parseStructs(dir string) (map[string]*ast.StructType, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	found := map[string]*ast.StructType{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					found[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	return found, nil
}

func newSetting(prefix, name string, field *ast.Field) Setting {
	tag := tagOf(field)
	s := Setting{field: name, Variable: variableOf(prefix, name, tag), Type: "text", Default: tag.Get("default")}
	s.Meaning = meaning(name, field.Doc.Text())
	switch typ := typeName(field.Type); {
	case typ == "time.Duration":
		s.Type = "duration"
	case typ == "bool":
		s.Type = "boolean"
		s.Default = cmp.Or(s.Default, "false")
	case typ == "[]string", typ == "Pairs":
		s.Type = "list"
	case typ == "config.Bytes":
		s.Type = "bytes"
	case strings.HasPrefix(typ, "int"), strings.HasPrefix(typ, "float"):
		s.Type = "number"
	}
	return s
}

func typeName(expr ast.Expr) string {
	switch typ := expr.(type) {
	case *ast.Ident:
		return typ.Name
	case *ast.SelectorExpr:
		return typeName(typ.X) + "." + typ.Sel.Name
	case *ast.ArrayType:
		return "[]" + typeName(typ.Elt)
	}
	return ""
}

var (
	// wordBreak matches a boundary between two words in the name of a field.
	wordBreak = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)
	// fieldName matches the name of a Go field that consists of several words.
	fieldName = regexp.MustCompile(`\b[A-Z]\w*[a-z][A-Z]\w*\b`)
	// plainVariable matches an environment variable's name without backquotes.
	plainVariable = regexp.MustCompile("(^|[^`A-Z_])(FNR_[A-Z_]+)")
)

// meaning converts the doc comment of a field to a cell of a Markdown table, without the field's name.
func meaning(name, comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	text = strings.TrimPrefix(text, name+" ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "is "), "are ")
	if strings.Count(text, ". ") == 0 {
		text = strings.TrimSuffix(text, ".")
	}
	text = strings.ReplaceAll(text, "|", `\|`)
	return plainVariable.ReplaceAllString(text, "$1`$2`")
}

// tagOf returns the tag of a struct field. It ignores a syntax error, which cannot occur in code that compiles.
func tagOf(field *ast.Field) reflect.StructTag {
	if field.Tag == nil {
		return ""
	}
	tag, _ := strconv.Unquote(field.Tag.Value)
	return reflect.StructTag(tag)
}

// variableOf returns the name of the environment variable from which envconfig reads a field.
func variableOf(prefix, field string, tag reflect.StructTag) string {
	if name := tag.Get("envconfig"); name != "" {
		return name
	}
	if tag.Get("split_words") == "true" {
		field = wordBreak.ReplaceAllString(field, "${1}${3}_${2}${4}")
	}
	return prefix + "_" + strings.ToUpper(field)
}

// generated matches a table of settings in the document, including the HTML comments before and after the table. The
// first comment names the group.
var generated = regexp.MustCompile(`(?s)(<!-- settings of ([a-z -]+): generated by [a-z ]+ -->\n).*?(<!-- end -->)`)

// Generate returns the document with updated tables of settings.
func Generate(root, document string) (string, error) {
	for _, group := range Groups {
		found, err := group.Settings(root)
		if err != nil {
			return "", err
		}
		var table strings.Builder
		table.WriteString("| variable | type | default | meaning |\n|---|---|---|---|\n")
		for _, s := range found {
			value := ""
			if s.Default != "" {
				value = "`" + s.Default + "`"
			}
			fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", s.Variable, s.Type, value, s.Meaning)
		}
		missing := true
		document = generated.ReplaceAllStringFunc(document, func(old string) string {
			parts := generated.FindStringSubmatch(old)
			if parts[2] != group.Name {
				return old
			}
			missing = false
			return parts[1] + "\n" + table.String() + "\n" + parts[3]
		})
		if missing {
			return "", fmt.Errorf("the document has no place for the settings of %s", group.Name)
		}
	}
	return document, nil
}
