// SPDX-License-Identifier: Apache-2.0

package kptfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
)

const header = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n"

func TestParse(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := kptfile.Parse("p/Kptfile", data)
	if err != nil {
		t.Fatal(err)
	}
	want := &kptfile.Kptfile{
		File: "p/Kptfile",
		Name: "full",
		Pipeline: kptfile.Pipeline{
			Mutators: []kptfile.Function{
				{
					Name: "ns", Image: "ghcr.io/kptdev/krm-functions-catalog/set-namespace", Tag: "~0.4",
					ConfigMap: map[string]string{"namespace": "shop", "count": "3", "on": "true"},
				},
				{Image: "localhost:5000/fn@sha256:" + strings.Repeat("a", 64), ConfigPath: "config/fn.yaml"},
			},
			Validators: []kptfile.Function{{
				Image:     "check:v1",
				Selectors: []kptfile.Selector{{APIVersion: "apps/v1", Kind: "Deployment", Labels: map[string]string{"a": "b"}}},
				Exclude:   []kptfile.Selector{{Name: "n", Namespace: "ns", Annotations: map[string]string{"c": "d"}}},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

// TestParseToday reads what newer releases of kpt write.
func TestParseToday(t *testing.T) {
	got, err := kptfile.Parse("Kptfile", []byte(header+`  annotations: {kpt.dev/save-on-render-failure: "TRUE"}
pipeline:
upstream: {git: {repo: r}, preserveExplicitNull: true}
status:
  conditions: [{type: Rendered, status: "False", observedgeneration: 0, lasttransitiontime: ""}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if !got.SaveOnFailure || got.ParentsFirst {
		t.Errorf("annotations are lost: %+v", got)
	}
}

// TestParseRejectsProposals rejects fields that were proposed for kpt and that no kpt reads: it and Porch refuse the
// package.
func TestParseRejectsProposals(t *testing.T) {
	for _, field := range []string{
		"when: 'true'", "condition: 'true'", "configRef: {kind: a, name: b}", "selectors: [{resourceFileRegexp: a}]",
	} {
		_, err := kptfile.Parse("Kptfile", []byte(header+"pipeline: {mutators: [{image: a, "+field+"}]}"))
		if err == nil || !strings.Contains(err.Error(), "here: it was proposed for kpt, and no release has it") {
			t.Errorf("with %s: %v, want an error", field, err)
		}
	}
}

func TestParentsFirst(t *testing.T) {
	for value, want := range map[string]bool{
		`"true"`: true, "true": true, `"True"`: true, `"false"`: false,
		`"yes"`: false, `""`: false,
	} {
		got, err := kptfile.Parse("Kptfile", []byte(header+"  annotations: {kpt.dev/bfs-rendering: "+value+"}\n"))
		if err != nil || got.ParentsFirst != want {
			t.Errorf("with %s: %+v, %v, want %t, as kpt reads it", value, got, err, want)
		}
	}
}

func TestParseRejects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		data   string
		field  string
		value  string
	}{
		"no function": {
			"a function that is none would be skipped in silence",
			header + "pipeline: {mutators: [{configMap: {a: b}}]}", "pipeline.mutators[0]", "",
		},
		"two functions": {
			"it is not clear which of the two is meant",
			header + "pipeline: {validators: [{image: a}, {image: a, exec: b}]}", "pipeline.validators[1]", "",
		},
		"two configurations": {
			"it is not clear which of the two is meant",
			header + "pipeline: {mutators: [{image: a, configPath: b, configMap: {c: d}}]}", "pipeline.mutators[0]", "",
		},
		"image": {
			"the gateway would reject it, without naming the file",
			header + "pipeline: {mutators: [{image: 'A B'}]}", "pipeline.mutators[0].image", "A B",
		},
		"no key": {
			"the function would get a value that has no name",
			header + "pipeline: {mutators: [{image: a, configMap: {'': x}}]}", "pipeline.mutators[0].configMap", "",
		},
		"configPath above": {
			"a package must not read files around it",
			header + "pipeline: {mutators: [{image: a, configPath: x/../../b}]}", "pipeline.mutators[0].configPath", "x/../../b",
		},
		"configPath absolute": {
			"a package must not read files around it",
			header + "pipeline: {mutators: [{image: a, configPath: /etc/b}]}", "pipeline.mutators[0].configPath", "/etc/b",
		},
		"configPath of nothing": {
			"a directory is no configuration",
			header + "pipeline: {mutators: [{image: a, configPath: ./}]}", "pipeline.mutators[0].configPath", "./",
		},
		"pipeline by another name": {
			"none of its functions would run",
			header + "pipelines: {mutators: [{image: a}]}", "pipelines", "",
		},
		"kind": {"another resource by that file name", "apiVersion: kpt.dev/v1\nkind: Package\n", "kind", "Package"},
		"old version": {
			"its pipeline would be ignored, whatever fields it has",
			"apiVersion: kpt.dev/v1alpha2\nkind: Kptfile\npackageMetadata: {}\n", "apiVersion", "kpt.dev/v1alpha2",
		},
		"other version": {"its meaning is unknown", "apiVersion: kpt.dev/v2\nkind: Kptfile\n", "apiVersion", "kpt.dev/v2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kptfile.Parse("Kptfile", []byte(tc.data))
			got, ok := errors.AsType[*kptfile.FieldError](err)
			if !ok || got.File != "Kptfile" || got.Field != tc.field || got.Value != tc.value {
				t.Errorf("Parse = %#v, want an error of field %s with value %q: %s", err, tc.field, tc.value, tc.reason)
			}
		})
	}
}

func TestParseRejectsUnknownFields(t *testing.T) {
	for name, tc := range map[string]struct{ reason, data, want string }{
		"selector": {
			"without it the function would get other resources",
			header + "pipeline: {mutators: [{image: a, selector: [{kind: b}]}]}",
			"Kptfile:5: a Kptfile has no field selector here (do you mean selectors?)",
		},
		"info": {
			"kpt refuses it", header + "info: {licence: x}",
			"Kptfile:5: a Kptfile has no field licence here (do you mean license?)",
		},
		"upstream": {
			"kpt refuses it", header + "upstream: {git: {branch: x}}", "Kptfile:5: a Kptfile has no field branch here",
		},
		"inventory": {"kpt refuses it", header + "inventory: {id: x}", "Kptfile:5: a Kptfile has no field id here"},
		"status":    {"kpt refuses it", header + "status: {phase: x}", "Kptfile:5: a Kptfile has no field phase here"},
		"metadata":  {"kpt refuses it", header + "  uid: x", "Kptfile:5: a Kptfile has no field uid here"},
		"top": {
			"the nearest name", header + "pipelin: {}", "Kptfile: pipelin is no field of a Kptfile: do you mean pipeline?",
		},
		"empty":     {"nothing is no Kptfile", "", "Kptfile is empty; it must be a Kptfile of kpt.dev/v1"},
		"no yaml":   {"what is wrong, and where", header + "pipeline: [", "Kptfile:5: did not find expected node content"},
		"not a map": {"what is wrong", "- a", "Kptfile:1: a list is not possible here, it must be a map"},
		"credentials": {
			"a value may be secret", "https://user:token@example.com", "Kptfile:1: text is not possible here, it must be a map",
		},
		"value": {
			"a value may be secret", header + "pipeline: {mutators: token}",
			"Kptfile:5: text is not possible here, it must be a list",
		},
		"duplicate": {
			"one of the two would be lost", header + "kind: x\n",
			`Kptfile:5: the field "kind" is there twice, first in line 2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kptfile.Parse("Kptfile", []byte(tc.data))
			if err == nil || err.Error() != tc.want {
				t.Errorf("Parse = %v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

// FuzzParse feeds arbitrary input to Parse. An accepted Kptfile must be safe to render: each
// function has something to run, and no configuration lies outside of the package.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := kptfile.Parse("Kptfile", data)
		if err != nil {
			return
		}
		for _, fn := range append(k.Pipeline.Mutators, k.Pipeline.Validators...) {
			if (fn.Image == "") == (fn.Exec == "") {
				t.Errorf("accepted a function with image %q and exec %q", fn.Image, fn.Exec)
			}
			if fn.ConfigPath != "" && !filepath.IsLocal(fn.ConfigPath) {
				t.Errorf("accepted configPath %q", fn.ConfigPath)
			}
		}
	})
}

func TestMayMean(t *testing.T) {
	tests := map[string]struct {
		reason                string
		reference, image, tag string
		want                  bool
	}{
		"whole name":     {"", "example.com/fns/a:v1", "example.com/fns/a:v1", "", true},
		"short name":     {"the gateway has added its prefix", "example.com/fns/a:v1", "a:v1", "", true},
		"another tag":    {"", "example.com/fns/a:v1", "a:v2", "", false},
		"no tag":         {"that is latest", "example.com/fns/a:latest", "a", "", true},
		"constraint":     {"the gateway has chosen", "example.com/fns/a:v1", "a:v9", "~1", true},
		"longer name":    {"a part of a word is no name", "example.com/fns/a-a:v1", "a:v1", "", false},
		"digest":         {"pools have tags", "example.com/fns/a:v1", "a:v1@sha256:1", "", true},
		"port":           {"that of a registry is no tag", "localhost:5000/a:v1", "localhost:5000/a:v1", "", true},
		"port, no tag":   {"", "localhost:5000/a:latest", "localhost:5000/a", "", true},
		"other registry": {"", "example.com/fns/a:v1", "example.org/fns/a:v1", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := kptfile.MayMean(tc.reference, tc.image, tc.tag); got != tc.want {
				t.Errorf("MayMean(%q, %q, %q) = %v: %s", tc.reference, tc.image, tc.tag, got, tc.reason)
			}
		})
	}
}
