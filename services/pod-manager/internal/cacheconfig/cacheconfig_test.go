// SPDX-License-Identifier: Apache-2.0

package cacheconfig_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
)

const prefix = "example.com/fns"

func TestParse(t *testing.T) {
	tests := map[string]struct {
		reason   string
		file     string
		want     []cacheconfig.Entry
		warnings []string
	}{
		"map": {
			"the older format; order is kept", "gcr.io/kpt-fn/set-namespace:v0.4.1: 30m\napply-setters:v0.2.0: 1h30m\n",
			[]cacheconfig.Entry{
				{Image: "gcr.io/kpt-fn/set-namespace:v0.4.1", TTL: 30 * time.Minute},
				{Image: prefix + "/apply-setters:v0.2.0", TTL: 90 * time.Minute},
			},
			nil,
		},
		"list": {"the newer format, and what we add to it", `
- name: example.org/b:v1
  timeToLive: 5m
  maxWaitlistLength: 3
  maxParallelPodsPerFunction: 4
  maxConcurrency: 5
  maxQueue: 6
  podReadyTimeout: 90s
  maxEvaluationTime: 10m
  minPods: 0
  prefork: 0
  resources:
    requests: {cpu: 1, memory: 64Mi}
    limits: {memory: 1Gi}
- name: a:v1
`, []cacheconfig.Entry{
			{
				Image: "example.org/b:v1", TTL: 5 * time.Minute, MaxWaitlistLength: 3, MaxPods: 4, MaxConcurrency: 5,
				MaxQueue: 6, ReadyTimeout: 90 * time.Second, MaxEvaluationTime: 10 * time.Minute, Prefork: new(int),
				MinPods: new(int),
				Resources: &corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("64Mi")},
					Limits:   corev1.ResourceList{"memory": resource.MustParse("1Gi")},
				},
			},
			{Image: prefix + "/a:v1"},
		}, nil},
		"nothing set": {
			"zero and null are not set",
			"- {name: a:v1, maxQueue: 0, timeToLive: null, minPods: null, prefork: null, resources: null}",
			[]cacheconfig.Entry{{Image: prefix + "/a:v1"}},
			nil,
		},
		"no time": {"an image may be named only", "a:v1:\n", []cacheconfig.Entry{{Image: prefix + "/a:v1"}}, nil},
		"aliases": {
			"YAML has means against repetition",
			"- {name: a:v1, resources: &r {limits: {cpu: 1}}}\n- {name: b:v1, resources: *r}",
			[]cacheconfig.Entry{
				{
					Image:     prefix + "/a:v1",
					Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
				},
				{
					Image:     prefix + "/b:v1",
					Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
				},
			},
			nil,
		},
		"empty":      {"a file with nothing in it asks for nothing", "# nothing\n", nil, nil},
		"null":       {"as it does here", "null", nil, nil},
		"empty map":  {"and here", "{}", nil, nil},
		"empty list": {"and here", "[]", nil, nil},
		"twice": {
			"the first one counts, whichever way it is spelled",
			"a:v1: 1m\nb:v1: 2m\nexample.com/fns/a:v1: 3m\n",
			[]cacheconfig.Entry{{Image: prefix + "/a:v1", TTL: time.Minute}, {Image: prefix + "/b:v1", TTL: 2 * time.Minute}},
			[]string{`line 3: "example.com/fns/a:v1" is ignored: line 1 has example.com/fns/a:v1 already`},
		},
		"unknown field": {
			"a typing error must not stay unseen",
			"- {name: a:v1, timetolive: 5m, maxQueue: 1, maxQueue: 2, resources: {limit: {cpu: 1}}}",
			[]cacheconfig.Entry{{Image: prefix + "/a:v1", MaxQueue: 1, Resources: &corev1.ResourceRequirements{}}},
			[]string{
				`line 1: entry 1: maxQueue occurs twice: the second entry is ignored`,
				`line 1: entry 1 ("a:v1"): resources: unknown field "limit" is ignored`,
				`line 1: entry 1 ("a:v1"): unknown field "timetolive" is ignored`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := cacheconfig.Parse([]byte(tc.file), prefix)
			if err != nil {
				t.Fatalf("%v: %s", err, tc.reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("warnings: %s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct {
		reason string
		file   string
		want   []string
	}{
		"no YAML": {"the cause is the parser's", "a: [", []string{"is not YAML"}},
		"a text": {
			"both formats are shown",
			"hello",
			[]string{"neither a map", "IMAGE: 30m", "nor a list", "- name: IMAGE"},
		},
		"time": {
			"the image and the value are named",
			"a:v1: soon",
			[]string{`line 1: "a:v1": the time to live is "soon"`, "such as 30m"},
		},
		"no unit":  {"30 of what?", "a:v1: 30", []string{`is "30"`}},
		"negative": {"pods would end before they begin", "a:v1: -5m", []string{`is "-5m"`, "more than zero"}},
		"object in a map": {
			"the formats cannot be mixed",
			"a:v1: {timeToLive: 5m}",
			[]string{`line 1: "a:v1": the time to live`},
		},
		"image":      {"a name that no registry has", "A b: 5m", []string{`line 1: "A b"`, "not a valid image name"}},
		"no name":    {"an entry without image", "- timeToLive: 5m", []string{"line 1: entry 1 has no name"}},
		"empty name": {"nor with an empty one", "- name: ''", []string{`line 1: entry 1 ("") has no name`}},
		"no object":  {"a name alone is not enough", "- a:v1", []string{"line 1: entry 1 is not an object"}},
		"number": {
			"all problems are named",
			"- {name: a:v1, maxQueue: many}\n- {name: b:v1, maxConcurrency: -1}\n" +
				"- {name: c:v1, maxParallelPodsPerFunction: 1.5, maxWaitlistLength: 99999999999}",
			[]string{
				`line 1: entry 1 ("a:v1"): maxQueue is "many"`,
				`entry 2 ("b:v1"): maxConcurrency is "-1"`,
				`entry 3 ("c:v1"): maxParallelPodsPerFunction is "1.5"`,
				`maxWaitlistLength is "99999999999"`,
			},
		},
		"prefork": {
			"no machine has so much to spare",
			"- {name: a:v1, prefork: 65}\n- {name: b:v1, prefork: -1}",
			[]string{`prefork is "65"`, `prefork is "-1"`, "from 0 (off) to 64"},
		},
		"minimum": {
			"pods that are always there cost their resources",
			"- {name: a:v1, minPods: 1001}\n- {name: b:v1, minPods: some}",
			[]string{`minPods is "1001"`, `minPods is "some"`, "from 0 (none) to 1000"},
		},
		"percent": {
			"names are shown as they are",
			"- {name: 'a%d', maxQueue: x%d}",
			[]string{`entry 1 ("a%d"): maxQueue is "x%d"`},
		},
		"timeout": {"the other time", "- {name: a:v1, podReadyTimeout: 0}", []string{`podReadyTimeout is "0"`}},
		"quantity": {
			"an amount that is none",
			"- {name: a:v1, resources: {limits: {cpu: lots}}}",
			[]string{`entry 1 ("a:v1"): resources: they must have a container's format`},
		},
		"resources": {
			"no object at all",
			"- {name: a:v1, resources: 5}",
			[]string{`entry 1 ("a:v1"): resources: they must have a container's format`},
		},
		"beyond the limit": {
			"Kubernetes would refuse each pod",
			"- {name: a:v1, resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}",
			[]string{"the request of 2Gi memory is more than the limit of 1Gi"},
		},
		"below zero": {
			"so it would here",
			"- {name: a:v1, resources: {limits: {cpu: -1}}}",
			[]string{"cpu is -1: it must be zero or more"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			entries, _, err := cacheconfig.Parse([]byte(tc.file), prefix)
			if entries != nil {
				t.Errorf("Parse = %v with an error", entries)
			}
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Parse: %v, want an error with %q: %s", err, want, tc.reason)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a:v1: 30m", "- {name: a:v1, timeToLive: 5m, resources: {limits: {cpu: 1}}}", "&a [*a]", "? [a]\n: b",
		"- &a {name: *a}", "- {name: [a], maxQueue: {}}", "a: &x {b: *x}", "- {<<: {name: a}}",
		"{1: 2, null: 3, a: ~}", "- {name: a, resources: {1: 2}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, _, err := cacheconfig.Parse(data, prefix)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, e := range entries {
			name, err := imagename.Parse(e.Image, "other.example")
			if err != nil || name.String() != e.Image || seen[name.Key()] {
				t.Errorf("entry for %q: %v; names are canonical, and there once", e.Image, err)
			}
			seen[name.Key()] = true
			if e.TTL < 0 || e.ReadyTimeout < 0 || e.MaxQueue < 0 || e.MaxPods < 0 || e.MaxConcurrency < 0 ||
				e.MaxWaitlistLength < 0 {
				t.Errorf("entry %+v has a setting below zero", e)
			}
		}
	})
}
