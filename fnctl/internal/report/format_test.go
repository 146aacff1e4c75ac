// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/xml"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/report"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

const reported = `
-- Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: shop
-- app.yaml --
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 9
`

// junit contains what CI systems show of a report.
type junit struct {
	Suites []struct {
		Name  string `xml:"name,attr"`
		Cases []struct {
			Class   string `xml:"classname,attr"`
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"failure"`
			Output string `xml:"system-out"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// TestJUnitNamesWhatFailed reports a package with results of every severity, with and without files and lines, in a
// mutator that ran, in the same mutator again and in a validator that failed with a colourful log.
func TestJUnitNamesWhatFailed(t *testing.T) {
	dir := t.TempDir()
	if err := txtar.Write(txtar.Parse([]byte(reported)), dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	tree, err := pkgtree.Read(".")
	if err != nil {
		t.Fatal(err)
	}
	call := func(image string) pipeline.Call {
		return pipeline.Call{Package: tree.Root, Function: kptfile.Function{Image: image}}
	}
	const image = "ghcr.io/kptdev/krm-functions-catalog/set-labels:v1"
	const tooMany = "too \x1b[1mmany\x1b[0m\x01 replicas\nask the owner"
	replicas := &result.Field{Path: "spec.replicas"}
	deployment := &result.Reference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	failed := &pipeline.FunctionError{Image: "check:v1", Failure: &functionrunnerv1.FunctionFailure{
		Reason: functionrunnerv1.FunctionFailure_REASON_EXITED, ExitCode: 1,
		Stderr: "\x1b[31mred\x1b[0m \x00 \x08 \ufffe & < ]]>",
	}}
	r := report.Report{Dir: ".", Tree: tree, Failure: failed, Rendering: &pipeline.Rendering{
		Mutations: []pipeline.Step{
			{Call: call(image), Outcome: pipeline.Outcome{Elapsed: time.Second, Results: []result.Record{
				{Message: "nothing to label"},
				{Message: "no owner", Severity: "Warning", File: &result.File{Path: "new.yaml"}},
				{Message: "no such object", Severity: "warning", ResourceRef: &result.Reference{Kind: "Role", Name: "a"}},
				{Message: "old", Severity: "info", ResourceRef: deployment},
			}}},
			{Call: call(image)},
		},
		Validations: []pipeline.Step{{Call: call("check:v1"), Outcome: pipeline.Outcome{Err: failed, Results: []result.Record{
			{Message: "looked at everything", Severity: "info"},
			{Message: tooMany, Severity: "ERROR", ResourceRef: deployment, Field: replicas},
		}}}},
	}}
	var out strings.Builder
	if err := r.Write(&out, "junit"); err != nil {
		t.Fatal(err)
	}
	var got junit
	if err := xml.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err, out.String())
	}
	var lines []string
	for _, suite := range got.Suites {
		lines = append(lines, "suite "+suite.Name)
		for _, c := range suite.Cases {
			lines = append(lines, c.Class+" / "+c.Name, c.Output)
			if c.Failure != nil {
				lines = append(lines, "failure: "+c.Failure.Message, c.Failure.Text)
			}
		}
	}
	want := `suite shop
shop / set-labels:v1
[info] nothing to label
[warning] new.yaml: no owner
[warning] Role/a: no such object
[info] app.yaml:1: old
shop / set-labels:v1 (2)

shop / check:v1

failure: too many replicas
[info] looked at everything
[error] app.yaml:6 spec.replicas: too many replicas
ask the owner
red   \ufffd & < ]]>`
	want = strings.ReplaceAll(want, `\ufffd`, "\ufffd")
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestJUnitSeparatesPackages reports a package and a package inside it whose directory has the name of the first.
func TestJUnitSeparatesPackages(t *testing.T) {
	kptfileOf := func(name string) string {
		return "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: " + name + "\n"
	}
	archive := "-- Kptfile --\n" + kptfileOf("shop") + "-- shop/Kptfile --\n" + kptfileOf("other")
	dir := t.TempDir()
	if err := txtar.Write(txtar.Parse([]byte(archive)), dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	tree, err := pkgtree.Read(".")
	if err != nil {
		t.Fatal(err)
	}
	step := func(pkg *pkgtree.Package) pipeline.Step {
		return pipeline.Step{Call: pipeline.Call{Package: pkg, Function: kptfile.Function{Image: "check:v1"}}}
	}
	var out strings.Builder
	r := report.Report{Dir: ".", Tree: tree, Rendering: &pipeline.Rendering{
		Mutations: []pipeline.Step{step(tree.Root.Subpackages[0]), step(tree.Root)},
	}}
	if err := r.Write(&out, "junit"); err != nil {
		t.Fatal(err)
	}
	for _, suite := range []string{"shop/shop", "shop"} {
		want := `<testcase classname="` + suite + `" name="check:v1"`
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

// TestJUnitReportsPackagesThatCannotBeRead has a single failure, without a package.
func TestJUnitReportsPackagesThatCannotBeRead(t *testing.T) {
	var out strings.Builder
	dir := filepath.Join("packages", "web")
	if err := (&report.Report{Dir: dir, Failure: errors.New("no \x1bKptfile")}).Write(&out, "junit"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `<testcase classname="render" name="packages/web">`) ||
		!strings.Contains(out.String(), `<failure message="no Kptfile">`) {
		t.Error(out.String())
	}
}
