// SPDX-License-Identifier: Apache-2.0

// Package metrics generates the table of metrics in docs/metrics.md. It searches the Go source for calls that create
// metrics. The descriptions in these calls become the text of the table.
package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Metric is a metric of a program, with its name in Prometheus.
type Metric struct {
	Name string
	// Package is the directory of the package that creates the metric, relative to the repository's root.
	Package string
	// Type is the kind of instrument: Counter, UpDownCounter, Histogram or Gauge.
	Type string
	// Programs lists the names of the programs that report the metric.
	Programs string
	// Labels are the names of the metric's labels. They come from the end of the description: "Labels: image, code."
	Labels []string
	// Meaning is the rest of the description.
	Meaning string
}

// programs lists the directories with code that creates metrics, and the programs that report these metrics. The table
// in the document has the same order as this list.
var programs = []struct{ dir, names string }{
	{"services/gateway", "gateway"},
	{"services/pod-manager", "pod-manager"},
	{"services/image-resolver", "image-resolver"},
	{"libs/resolverclient", "gateway, pod-manager"},
	{"libs/rpcclient", "gateway, pod-manager"},
	{"libs/function", "gateway, wrapper-server"},
	{"libs/mtls", "gateway, pod-manager, image-resolver"},
	{"libs/rpcserve", "all"},
	{"libs/telemetry", "all"},
}

// Metrics returns the metrics that all programs create, in the order of the table in docs/metrics.md. root is the
// root of the repository.
func Metrics(root string) ([]Metric, error) {
	var found []Metric
	for _, dir := range []string{"services", "libs", "wrapper-server"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			metrics, err := readFile(root, path)
			found = append(found, metrics...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	position := func(m Metric) int {
		for i, p := range programs {
			if p.names == m.Programs {
				return i
			}
		}
		return len(programs)
	}
	slices.SortFunc(found, func(a, b Metric) int {
		return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a.Name, b.Name))
	})
	return found, nil
}

// readFile returns the metrics that the code in a Go file creates.
func readFile(root, path string) ([]Metric, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	relative, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	reporters := ""
	for _, p := range programs {
		if strings.HasPrefix(filepath.ToSlash(relative), p.dir+"/") {
			reporters = p.names
		}
	}
	var found []Metric
	var errs []error
	ast.Inspect(file, func(n ast.Node) bool {
		m := parseCall(n)
		if m.Name == "" {
			return true
		}
		if reporters == "" {
			errs = append(errs, fmt.Errorf("%s: the table does not know which programs report %s", relative, m.Name))
		}
		m.Package, m.Programs = filepath.ToSlash(filepath.Dir(relative)), reporters
		found = append(found, m)
		return true
	})
	return found, errors.Join(errs...)
}

var (
	// instrument matches the names of the OpenTelemetry methods that create metrics.
	instrument = regexp.MustCompile(`^(?:Int64|Float64)(?:Observable)?(Counter|UpDownCounter|Histogram|Gauge)$`)
	// labelList matches the list of labels at the end of a metric's description.
	labelList = regexp.MustCompile(` Labels?: ([a-z_, ]+)\.$`)
)

// units maps units in the source to the suffixes that Prometheus' exporter appends to metric names.
var units = map[string]string{"s": "_seconds", "By": "_bytes"}

// parseCall returns the metric that a call creates. The metric's name is empty if n does not create a metric.
func parseCall(n ast.Node) Metric {
	method, args := callOf(n)
	match := instrument.FindStringSubmatch(method)
	if match == nil || len(args) == 0 || text(args[0]) == "" {
		return Metric{}
	}
	m := Metric{Name: strings.ReplaceAll(text(args[0]), ".", "_"), Type: match[1]}
	for _, option := range args[1:] {
		switch method, args := callOf(option); method {
		case "WithUnit":
			m.Name += units[text(args[0])]
		case "WithDescription":
			m.Meaning = text(args[0])
		}
	}
	if m.Type == "Counter" {
		m.Name += "_total"
	}
	if labels := labelList.FindStringSubmatch(m.Meaning); labels != nil {
		m.Labels = strings.Split(labels[1], ", ")
		m.Meaning = strings.TrimSuffix(m.Meaning, labels[0])
	}
	return m
}

// callOf returns the name and arguments of the method that n calls. The name is empty if n is not a method call.
func callOf(n ast.Node) (name string, args []ast.Expr) {
	if c, ok := n.(*ast.CallExpr); ok {
		if s, ok := c.Fun.(*ast.SelectorExpr); ok {
			return s.Sel.Name, c.Args
		}
	}
	return "", nil
}

// text returns the value of a string literal or of concatenated literals. All other expressions yield an empty string.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return text(e.X) + text(e.Y)
	case *ast.BasicLit:
		value, _ := strconv.Unquote(e.Value)
		return value
	}
	return ""
}

// generated matches the table of metrics in the document, including the HTML comments before and after the table.
var generated = regexp.MustCompile(`(?s)(<!-- metrics: generated by [a-z ]+ -->\n).*?(<!-- end -->)`)

// Generate returns the document with an updated table of metrics.
func Generate(root, document string) (string, error) {
	found, err := Metrics(root)
	if err != nil {
		return "", err
	}
	if !generated.MatchString(document) {
		return "", errors.New("the document has no place for the table of metrics")
	}
	var table strings.Builder
	table.WriteString("\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	programs := ""
	for _, m := range found {
		if m.Programs != programs {
			programs = m.Programs
			fmt.Fprintf(&table, "| **%s** | | | |\n", programs)
		}
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n",
			m.Name, strings.ToLower(m.Type), labels, strings.TrimSuffix(m.Meaning, "."))
	}
	table.WriteString("\n")
	return generated.ReplaceAllStringFunc(document, func(old string) string {
		parts := generated.FindStringSubmatch(old)
		return parts[1] + table.String() + parts[2]
	}), nil
}
