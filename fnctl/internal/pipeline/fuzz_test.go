// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"testing"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// output is a function with a constant output.
type output []byte

func (o output) Evaluate(context.Context, pipeline.Request) (pipeline.Response, error) {
	return pipeline.Response{ResourceList: o}, nil
}

// FuzzOutput runs functions with arbitrary output. Either the output is rejected, or its resources
// can be written to a package.
func FuzzOutput(f *testing.F) {
	const head = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n"
	f.Add([]byte(head + "items:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: a\n    annotations:\n" +
		"      config.kubernetes.io/path: a.yaml\n      internal.config.kubernetes.io/id: '1'\n"))
	f.Add([]byte(head + "items:\n- null\n- 1\n- [a]\n- {metadata: []}\n"))
	f.Add([]byte(head + "items: []\nresults:\n- message: a\n  severity: error\n  resourceRef: {kind: a}\n"))
	f.Add([]byte(head + "results:\n  items:\n  - message: a\n    file: {path: a}\n"))
	f.Add([]byte(`{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"Secret",` +
		`"metadata":{"name":"s","annotations":{"internal.config.kubernetes.io/index":"-1"}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := pkgtree.ReadFlat(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		renderer := pipeline.Renderer{Evaluator: output(data), Observer: &observer{}}
		resources, _, err := renderer.Mutate(t.Context(),
			pipeline.Call{Package: tree.Root, Function: kptfile.Function{Image: "a"}}, nil)
		if err != nil {
			if _, ok := errors.AsType[*pipeline.OutputError](err); !ok {
				t.Errorf("error %v, want one about the function's output", err)
			}
			return
		}
		if _, err := tree.Files(resources); err != nil {
			t.Errorf("resources that were accepted cannot be written: %v", err)
		}
	})
}
