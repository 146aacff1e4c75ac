// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// setting is a field of a configuration.
type setting struct {
	variable string
	value    string // the default; in Go's form if there is none
}

// settingsOf returns the settings of a package's configuration from its source: the package may be
// internal. Dir is relative to the root.
func settingsOf(t *testing.T, dir string) []setting {
	t.Helper()
	types := structs(t, dir)
	return fields(t, types, types["Config"], "FNR")
}

// structs returns the struct types of a package, by name.
func structs(t *testing.T, dir string) map[string]*ast.StructType {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no source: %v", dir, err)
	}
	found := map[string]*ast.StructType{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
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
	return found
}

// shared are the configurations that several programs have, by their name in fields.
var shared = map[string]string{"serve": "libs/serve", "telemetry": "libs/telemetry", "tls": "libs/mtls"}

// fields returns the settings of a struct, under their names in envconfig.
func fields(t *testing.T, types map[string]*ast.StructType, of *ast.StructType, prefix string) []setting {
	t.Helper()
	if of == nil {
		t.Fatal("there is no configuration")
	}
	var found []setting
	for _, field := range of.Fields.List {
		tag := tagOf(t, field)
		if tag.Get("ignored") == "true" {
			continue
		}
		if embedded, ok := field.Type.(*ast.SelectorExpr); ok && len(field.Names) == 0 {
			part := structs(t, "libs/"+embedded.X.(*ast.Ident).Name)
			found = append(found, fields(t, part, part[embedded.Sel.Name], prefix)...)
		}
		for _, name := range field.Names {
			variable := variableOf(prefix, name.Name, tag)
			switch typ := field.Type.(type) {
			case *ast.Ident:
				if part := types[typ.Name]; part != nil {
					found = append(found, fields(t, types, part, variable)...)
					continue
				}
				found = append(found, setting{variable, valueOf(typ.Name, tag)})
			case *ast.SelectorExpr:
				if dir := shared[typ.X.(*ast.Ident).Name]; dir != "" {
					part := structs(t, dir)
					found = append(found, fields(t, part, part["Config"], variable)...)
					continue
				}
				found = append(found, setting{variable, valueOf(typ.Sel.Name, tag)})
			default:
				found = append(found, setting{variable, tag.Get("default")})
			}
		}
	}
	return found
}

func tagOf(t *testing.T, field *ast.Field) reflect.StructTag {
	t.Helper()
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		t.Fatal(err)
	}
	return reflect.StructTag(tag)
}

// wordBreak matches the boundary between the words of a field's name.
var wordBreak = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

func variableOf(prefix, field string, tag reflect.StructTag) string {
	if name := tag.Get("envconfig"); name != "" {
		return name
	}
	if tag.Get("split_words") == "true" {
		field = wordBreak.ReplaceAllString(field, "${1}${3}_${2}${4}")
	}
	return prefix + "_" + strings.ToUpper(field)
}

func valueOf(typ string, tag reflect.StructTag) string {
	if value := tag.Get("default"); value != "" || typ != "bool" {
		return value
	}
	return "false"
}
