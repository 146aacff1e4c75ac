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

// TestOwnConfiguration renders functions with configurations in files: each gets its own as
// configuration only, and the others' as resources.
func TestOwnConfiguration(t *testing.T) {
	for mutators, want := range map[string][]string{
		"[{image: see, configPath: config.yaml}, {image: see}]": {"p a z", "p a z config"},
		"[{image: see, configPath: ./config.yaml}]":             {"p a config z"},
		"[{image: see, configPath: config.yaml, selectors: [{kind: ConfigMap}]}, {image: see}]": {
			"a z", "p a z config",
		},
		"[{image: see, configRef: {kind: ConfigMap, name: config}}]":               {"p a config z"},
		"[{image: see, configRef: {kind: ConfigMap, name: z, namespace: one}}]":    {"p a config z"},
		`[{image: see, selectors: [{resourceFileRegexp: "^[az]\\.yaml$"}]}]`:       {"a z"},
		`[{image: see, exclude: [{resourceFileRegexp: "file"}, {kind: Secret}]}]`:  {"a config z"},
		`[{image: see, when: "resources.size() == 4"}]`:                            {"p a config z"},
		`[{image: see, when: "resources.size() == 4", selectors: [{name: a}]}]`:    nil,
		`[{image: see, condition: "false"}, {image: see, when: "true"}]`:           {"p a config z"},
		`[{image: see, when: "false"}, {image: see, selectors: [{name: config}]}]`: {"config"},
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

func TestConfigRefMustBeOne(t *testing.T) {
	for ref, want := range map[string]string{
		"{kind: ConfigMap, name: none}":                    "there are 0",
		"{kind: ConfigMap, name: config, apiVersion: v2}":  "there are 0",
		"{kind: ConfigMap, name: config, namespace: else}": "there are 0",
	} {
		var inputs []string
		archive := strings.Replace(configured, "MUTATORS", "[{image: see, configRef: "+ref+"}]", 1)
		_, err := render(t, archive, seen(&inputs), &observer{})
		if err == nil || !strings.Contains(err.Error(), want) || len(inputs) > 0 {
			t.Errorf("Render with configRef %s = %v, want %q before the function runs", ref, err, want)
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
