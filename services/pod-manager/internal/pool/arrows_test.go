// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// readingOrder are the package's files in the order in which its comment introduces them.
var readingOrder = []string{
	"config", "event", "action", "pod", "health", "pool", "queue", "eviction", "ownership", "connectivity", "machine",
	"status",
}

// maxArrowsUp bounds the pairs of files of which the earlier one uses what the later one declares.
const maxArrowsUp = 12

// noImports is an importer for code whose own declarations alone matter.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

// TestFilesUseFilesBeforeThem counts the pairs of files that run against the reading order. Fields are not counted.
func TestFilesUseFilesBeforeThem(t *testing.T) {
	t.Parallel()
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range readingOrder {
		file, err := parser.ParseFile(set, name+".go", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := config.Check("pool", set, files, &info) // its errors are missing imports
	fileOf := func(pos token.Pos) int {
		return slices.Index(readingOrder, strings.TrimSuffix(set.Position(pos).Filename, ".go"))
	}
	up := make(map[string][]string)
	for ident, object := range info.Uses {
		function, _ := object.(*types.Func)
		if object.Pkg() != pkg || (function == nil && object.Parent() != pkg.Scope()) {
			continue
		}
		if from, to := fileOf(ident.Pos()), fileOf(object.Pos()); from < to {
			arrow := readingOrder[from] + " uses " + readingOrder[to]
			if !slices.Contains(up[arrow], ident.Name) {
				up[arrow] = append(up[arrow], ident.Name)
			}
		}
	}
	if len(up) > maxArrowsUp {
		t.Errorf("%d pairs of files, want %d at most:", len(up), maxArrowsUp)
		for arrow, names := range up {
			t.Errorf("%s: %s", arrow, strings.Join(names, ", "))
		}
	}
}
