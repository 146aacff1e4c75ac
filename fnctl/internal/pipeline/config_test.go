// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
)

func function(image string) kptfile.Function { return kptfile.Function{Image: image} }

const configured = `
-- Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: p}
pipeline:
  mutators: MUTATORS
-- a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
-- config.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: config}
-- z.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: z, namespace: one}
`

// TestOwnConfiguration renders functions with configurations in files: as in kpt and Porch, each gets its own as
// configuration and as a resource.
func TestOwnConfiguration(t *testing.T) {
	for mutators, want := range map[string][]string{
		"[{image: see, configPath: config.yaml}, {image: see}]": {"p a config z", "p a config z"},
		"[{image: see, configPath: ./config.yaml}]":             {"p a config z"},
		"[{image: see, configPath: config.yaml, selectors: [{kind: ConfigMap}]}, {image: see}]": {
			"a config z", "p a config z",
		},
		"[{image: see, exclude: [{kind: Secret}, {name: z}]}]": {"p a config"},
	} {
		var inputs []string
		resources, err := render(t, strings.Replace(configured, "MUTATORS", mutators, 1), seen(&inputs), &observer{})
		if err != nil {
			t.Errorf("%s: %v", mutators, err)
		}
		if diff := cmp.Diff(want, inputs); diff != "" {
			t.Errorf("inputs with %s (-want +got):\n%s", mutators, diff)
		}
		if len(resources) != 4 {
			t.Errorf("with %s the resources are %v", mutators, names(resources))
		}
	}
}

// TestFirstOfTwoConfigurationsCounts adds a second resource to the file of a configuration.
func TestFirstOfTwoConfigurationsCounts(t *testing.T) {
	got := ""
	e := &evaluator{functions: map[string]framework.ResourceListProcessorFunc{
		"add": func(list *framework.ResourceList) error {
			second := yaml.MustParse("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: second\n  annotations:\n" +
				"    internal.config.kubernetes.io/path: config.yaml\n    internal.config.kubernetes.io/index: \"1\"\n")
			list.Items = append(list.Items, second)
			return nil
		},
		"use": func(list *framework.ResourceList) error {
			got = list.FunctionConfig.GetName()
			return nil
		},
	}}
	archive := strings.Replace(configured, "MUTATORS", "[{image: add}, {image: use, configPath: config.yaml}]", 1)
	if _, err := render(t, archive, e, &observer{}); err != nil || got != "config" {
		t.Errorf("the configuration is %q, %v, want the first", got, err)
	}
}
