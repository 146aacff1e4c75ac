// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/fnctl/internal/explain"
	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
)

// TestPageShowsFields writes a page: a function that moves a resource to another namespace changes one field, and what
// functions write is text, not markup.
func TestPageShowsFields(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\n"
	call := pipeline.Call{Package: &pkgtree.Package{Path: "sub"}, Function: kptfile.Function{Image: "set:v1", Tag: "^1"}}
	steps := []pipeline.Step{{
		Call: call,
		Changes: []pkgtree.Change{{
			Path:   "a.yaml",
			Before: []byte(service + "metadata: {name: web, namespace: default}\nspec: {ports: [80, 81]}\n"),
			After:  []byte(service + "metadata: {name: web, namespace: shop}\nspec: {ports: [80]}\n"),
		}, {Path: "text", After: []byte("<b>\n")}},
		Outcome: pipeline.Outcome{
			Results: []result.Record{{Message: "<script>alert(1)</script>", Severity: "warning"}}, Log: []byte("\u202elog"),
		},
	}, {Call: call, Outcome: pipeline.Outcome{
		Err: errors.New("it failed"), Results: []result.Record{{Message: "two ports are open", Severity: "error"}},
	}}}
	var out strings.Builder
	err := explain.Write(&out, "web", &pipeline.Rendering{Mutations: steps[:1], Validations: steps[1:]}, errors.New("no"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<td>Service web</td><td>metadata.namespace</td><td class=\"removed\">default</td><td class=\"added\">shop</td>",
		"<td>Service web</td><td>spec.ports[1]</td><td class=\"removed\">81</td><td class=\"added\"></td>",
		"2 fields, 2 files", "&lt;script&gt;alert(1)", "&lt;b&gt;", `<p class="failed search">it failed</p>`,
		"two ports are open",
		`role="alert">no</p>`, "set:v1 (tag ^1) in ./sub",
		"default-src 'none'", "color-scheme: light dark",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, unwanted := range []string{"<script>alert", "\u202e", "http://", "https://", "src="} {
		if strings.Contains(out.String(), unwanted) {
			t.Errorf("the page has %q", unwanted)
		}
	}
}
