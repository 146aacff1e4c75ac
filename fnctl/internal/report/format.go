// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// Formats are the names of the formats of a [Report].
var Formats = []string{"github", "json", "junit"}

// Report describes a rendering to programs, such as CI systems.
type Report struct {
	// Dir is the directory of the package, as the user gave it.
	Dir string
	// Tree and Rendering are nil if the package cannot be read.
	Tree      *pkgtree.Tree
	Rendering *pipeline.Rendering
	// Changes are the files that a render would change. They are nil unless --check makes changes an error.
	Changes []pkgtree.Change
	// Failure is nil if the command succeeded.
	Failure error
}

// function is a function in a report, including a function that could not run.
type function struct {
	Package  string          `json:"package"`
	Image    string          `json:"image,omitempty"`
	Exec     string          `json:"exec,omitempty"`
	ExitCode int             `json:"exitCode"`
	Seconds  float64         `json:"seconds"`
	Problem  string          `json:"problem,omitempty"`
	Log      string          `json:"log,omitempty"`
	Results  []locatedResult `json:"results,omitempty"`

	title   string // name of the function for users
	suite   string // name of the package for users
	kptfile string
	line    int
}

// locatedResult is a function's message about a resource, with the resource's file and line. The file's path begins
// with the package's path as the user gave it.
type locatedResult struct {
	Message  string            `json:"message"`
	Severity string            `json:"severity"`
	File     string            `json:"file,omitempty"`
	Line     int               `json:"line,omitempty"`
	Resource *result.Reference `json:"resource,omitempty"`
	Field    string            `json:"field,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
}

// changedFile is a file in a report that a render would change.
type changedFile struct {
	Path   string `json:"path"`
	Change string `json:"change"`
	line   int
}

// Write writes the report in one of the [Formats].
func (r *Report) Write(out io.Writer, format string) (err error) {
	var text string
	switch format {
	case "github":
		text = r.github()
	case "junit":
		text, err = r.junit()
	default:
		text = ui.ValueJSON(struct {
			Succeeded bool          `json:"succeeded"`
			Problem   string        `json:"problem,omitempty"`
			Functions []function    `json:"functions"`
			Files     []changedFile `json:"files"`
		}{r.Failure == nil, r.problem(), append([]function{}, r.functions()...), append([]changedFile{}, r.changes()...)})
		text += "\n"
	}
	if err == nil {
		_, err = io.WriteString(out, text)
	}
	return err
}

// problem returns the reason of the command's failure. It is empty if the command succeeded.
func (r *Report) problem() string {
	if r.Failure == nil {
		return ""
	}
	return problem(r.Failure)
}

// functions returns the functions of the report in the order of their evaluation, mutators first. After an error,
// it contains the functions up to the failed function.
func (r *Report) functions() []function {
	if r.Rendering == nil {
		return nil
	}
	var all []function
	add := func(list string, steps []pipeline.Step) {
		seen := map[*pkgtree.Package]int{} // number of functions of each package so far
		for _, taken := range steps {
			s, pkg := newStep(taken), taken.Call.Package
			f := function{
				Package: path.Join(filepath.ToSlash(r.Dir), pkg.Path), Image: s.Image, Exec: s.Exec, ExitCode: s.ExitCode,
				Seconds: taken.Outcome.Elapsed.Seconds(), Problem: s.ExecutionError, Log: s.Stderr,
				title: cmp.Or(s.Name, kptfile.ShortName(s.Image), s.Exec),
			}
			if f.suite = f.Package; path.Clean(filepath.ToSlash(r.Dir)) == "." {
				f.suite = path.Join(r.Tree.Root.Kptfile.Name, pkg.Path)
			}
			f.kptfile = path.Join(f.Package, kptfile.FileName)
			field := fmt.Sprintf("pipeline.%s[%d]", list, seen[pkg])
			f.line = r.Tree.Line(path.Join(pkg.Path, kptfile.FileName), 0, field)
			seen[pkg]++
			for _, record := range s.Results {
				f.Results = append(f.Results, r.locate(pkg, record))
			}
			all = append(all, f)
		}
	}
	add(kptfile.Mutators, r.Rendering.Mutations)
	add(kptfile.Validators, r.Rendering.Validations)
	return all
}

// locate returns a result with the file and line of its resource or field. The file is empty if the result names
// neither a file nor a resource of the package.
func (r *Report) locate(pkg *pkgtree.Package, record result.Record) locatedResult {
	located := locatedResult{
		Message: strings.TrimSpace(record.Message), Severity: string(record.Level()),
		Resource: record.ResourceRef, Tags: record.Tags,
	}
	if record.Field != nil {
		located.Field = record.Field.Path
	}
	file, index := "", 0
	if record.File != nil && record.File.Path != "" {
		file, index = path.Join(pkg.Path, record.File.Path), record.File.Index
	}
	// The result may name no known file, or a path relative to an inner package. We then use the file of its resource.
	if ref := record.ResourceRef; ref != nil && !r.Tree.Has(file) {
		file, index = r.Tree.FileOf(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)
	}
	if file != "" {
		located.File = path.Join(filepath.ToSlash(r.Dir), file)
	}
	if r.Tree.Has(file) {
		located.Line = r.Tree.Line(file, index, located.Field)
	}
	return located
}

// String returns the result as a line of text, such as "[error] web/app.yaml:6 spec.replicas: too many". Without a
// file, it names the resource.
func (l locatedResult) String() string {
	place := l.File
	switch {
	case l.Line > 0:
		place += ":" + strconv.Itoa(l.Line)
	case place == "" && l.Resource != nil:
		place = l.Resource.String()
	}
	if place = strings.TrimSpace(place + " " + l.Field); place != "" {
		place += ": "
	}
	return fmt.Sprintf("[%s] %s%s", l.Severity, place, l.Message)
}

func (r *Report) changes() []changedFile {
	var files []changedFile
	for _, c := range r.Changes {
		line := 1 + bytes.Count(c.Before[:commonPrefix(c.Before, c.After)], []byte("\n"))
		files = append(files, changedFile{path.Join(filepath.ToSlash(r.Dir), c.Path), c.Kind(), line})
	}
	return files
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// firstError returns the message of the first result of severity error. It is empty if there is none.
func (f function) firstError() string {
	for _, r := range f.Results {
		if r.Severity == string(result.Error) {
			return cmp.Or(r.Message, "it reports an error without a message")
		}
	}
	return ""
}

// failure describes a function's failure in a few words, or returns an empty text if the function succeeded.
func (f function) failure() string {
	switch {
	case f.Problem != "":
		return f.Problem
	case f.ExitCode != 0:
		return strings.TrimSpace(fmt.Sprintf("exit code %d\n%s", f.ExitCode, f.Log))
	}
	return ""
}

// The levels of GitHub annotations by the severity of a result.
var githubLevels = map[string]string{
	string(result.Error): "error", string(result.Warning): "warning", string(result.Info): "notice",
}

var (
	githubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	// filePosition matches the file and line at the beginning of an error about a package that cannot be read.
	filePosition = regexp.MustCompile(`^(?:read package: )?([^:\s]+):(\d+): `)
)

// github returns the report as workflow commands, which GitHub shows as annotations of lines.
func (r *Report) github() string {
	var b strings.Builder
	write := func(level, file string, line int, title, message string) {
		fmt.Fprintf(&b, "::%s ", cmp.Or(githubLevels[level], "notice"))
		if file != "" {
			fmt.Fprintf(&b, "file=%s,", githubProperty.Replace(file))
		}
		if line > 0 {
			fmt.Fprintf(&b, "line=%d,", line)
		}
		fmt.Fprintf(&b, "title=%s::%s\n", githubProperty.Replace(title), githubData.Replace(message))
	}
	failed := false
	for _, f := range r.functions() {
		for _, found := range f.Results {
			message := found.Message
			if found.Field != "" {
				message = found.Field + ": " + message
			}
			write(found.Severity, found.File, found.Line, f.title, message)
		}
		failure := f.failure()
		if failed = failed || failure != ""; failure != "" && f.firstError() == "" {
			write("error", f.kptfile, f.line, f.title, failure)
		}
	}
	for _, c := range r.changes() {
		write("error", c.Path, c.line, "not rendered", "fnctl render would leave this file "+c.Change)
	}
	if !failed && len(r.Changes) == 0 && r.Failure != nil {
		file, line := "", 0
		if found := filePosition.FindStringSubmatch(r.problem()); found != nil {
			file = found[1]
			line, _ = strconv.Atoi(found[2])
		} else if invalid, ok := errors.AsType[*kptfile.FieldError](r.Failure); ok {
			file, line = invalid.File, 1
		}
		write("error", file, line, "fnctl", r.problem())
	}
	return b.String()
}

// Elements of the XML format of JUnit, with the attributes that most CI systems read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`

		names map[string]int // number of cases by name
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Seconds string        `xml:"time,attr,omitempty"`
		Failure *junitFailure `xml:"failure"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// junit returns the report in JUnit's format. It contains a test suite for each package, a suite for files that would
// change and, if the package cannot be rendered, a suite for this error.
func (r *Report) junit() (string, error) {
	var all junitSuites
	add := func(suite string, c junitCase) {
		i := slices.IndexFunc(all.Suites, func(s junitSuite) bool { return s.Name == suite })
		if i < 0 {
			i = len(all.Suites)
			all.Suites = append(all.Suites, junitSuite{Name: suite, names: map[string]int{}})
		}
		c.Class = suite
		s := &all.Suites[i]
		s.names[c.Name]++
		if n := s.names[c.Name]; n > 1 { // CI systems merge test cases of the same name
			c.Name = fmt.Sprintf("%s (%d)", c.Name, n)
		}
		s.Cases = append(s.Cases, c)
		s.Tests++
		all.Tests++
		if c.Failure != nil {
			s.Failures++
			all.Failures++
		}
	}
	for _, f := range r.functions() {
		var lines []string
		for _, found := range f.Results {
			lines = append(lines, found.String())
		}
		output := ui.Plain(strings.TrimSpace(strings.Join(append(lines, f.Log), "\n")))
		c := junitCase{Name: f.title, File: f.kptfile, Seconds: fmt.Sprintf("%.3f", f.Seconds)}
		if failure := cmp.Or(f.firstError(), f.failure()); failure != "" {
			first, _, _ := strings.Cut(failure, "\n")
			c.Failure = &junitFailure{Message: ui.Plain(first), Text: output}
		} else {
			c.Output = output
		}
		add(f.suite, c)
	}
	for _, c := range r.changes() {
		message := "fnctl render would leave this file " + c.Change
		add("files", junitCase{Name: c.Path, File: c.Path, Failure: &junitFailure{Message: message}})
	}
	if r.Failure != nil && all.Failures == 0 {
		add("render", junitCase{Name: r.Dir, Failure: &junitFailure{Message: ui.Plain(r.problem())}})
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	return xml.Header + string(text) + "\n", err
}
