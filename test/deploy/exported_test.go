// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// instrument matches the methods that create metrics.
var instrument = regexp.MustCompile(`^(?:Int64|Float64)(?:Observable)?(Counter|UpDownCounter|Histogram|Gauge)$`)

// units are as Prometheus's exporter spells them.
var units = map[string]string{"s": "_seconds", "By": "_bytes"}

// exported returns the metrics that our programs create, in Prometheus's spelling, with their
// types, such as "Counter".
var exported = sync.OnceValues(func() (map[string]string, error) {
	kinds := map[string]string{}
	for _, dir := range []string{"services", "libs", "wrapper-server"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if name, kind := made(n); name != "" {
					kinds[name] = kind
				}
				return true
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return kinds, nil
})

// made returns the metric that n creates, and its type; nothing if n is not such a call.
func made(n ast.Node) (name, kind string) {
	method, args := call(n)
	match := instrument.FindStringSubmatch(method)
	if match == nil || len(args) == 0 {
		return "", ""
	}
	name, kind = strings.ReplaceAll(text(args[0]), ".", "_"), match[1]
	if name == "" {
		return "", ""
	}
	unit := slices.IndexFunc(args, func(option ast.Expr) bool {
		method, args := call(option)
		return method == "WithUnit" && len(args) == 1
	})
	if unit >= 0 {
		_, args := call(args[unit])
		name += units[text(args[0])]
	}
	if kind == "Counter" {
		name += "_total"
	}
	return name, kind
}

// call returns the name of the method or function that n calls, and its arguments.
func call(n ast.Node) (name string, args []ast.Expr) {
	if c, ok := n.(*ast.CallExpr); ok {
		if s, ok := c.Fun.(*ast.SelectorExpr); ok {
			return s.Sel.Name, c.Args
		}
	}
	return "", nil
}

// text returns the value of a literal; it is empty if the expression is not one.
func text(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	value, _ := strconv.Unquote(literal.Value)
	return value
}

// base returns the metric of a series: a histogram has three.
func base(kinds map[string]string, series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(series, suffix); ok && kinds[name] == "Histogram" {
			return name
		}
	}
	return series
}

// promised are the metrics that must stay: users' dashboards have them.
var promised = []string{
	"fn_evaluations_total", "fn_evaluation_duration_seconds", "fn_phase_duration_seconds", "fn_cold_starts_total",
	"fn_queue_depth",
	"fn_rejections_total", "fn_pods", "fn_pod_evictions_total", "fn_retries_total", "fn_request_bytes",
	"fn_response_bytes", "fn_registry_requests_total",
}

// TestMetricsAreDocumented compares the metrics of the code with those of the documents.
func TestMetricsAreDocumented(t *testing.T) {
	kinds, err := exported()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range promised {
		if kinds[name] == "" {
			t.Errorf("%s is promised, and no program reports it", name)
		}
	}
	named := map[string]bool{}
	for _, document := range []string{"docs/metrics.md", "ARCHITECTURE.md", "deploy/README.md"} {
		for _, series := range regexp.MustCompile(`\bfn_[a-z_]+`).FindAllString(
			string(mustRead(t, filepath.Join(root, document))), -1) {
			name := base(kinds, series)
			if named[name] = true; kinds[name] == "" {
				t.Errorf("%s names %s, which no program reports", document, series)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if !named[name] {
			t.Errorf("%s is in no document: add it to docs/metrics.md", name)
		}
	}
}
