// SPDX-License-Identifier: Apache-2.0

package functionconfig_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

const prefix = "ghcr.io/kptdev/krm-functions-catalog"

// object returns a FunctionConfig with a spec in YAML, as the API server's answer has it.
func object(t testing.TB, name, spec string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON(
		[]byte("apiVersion: config.porch.kpt.dev/v1alpha1\nkind: FunctionConfig\nspec: " + spec),
	)
	if err != nil {
		t.Fatal(err)
	}
	u := new(unstructured.Unstructured)
	if err := u.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	u.SetName(name)
	u.SetUID(types.UID("uid-of-" + name))
	u.SetGeneration(3)
	return u
}

func TestDecode(t *testing.T) {
	u := object(t, "set-namespace", `
  image: set-namespace
  prefixes: ["", gcr.io/kpt-fn]
  binaryExecutor: {tags: [v0.4.1, v0.4.0, v0.4.1], path: set-namespace}
  goExecutor: {tags: [v0.4.1], id: set-namespace}
  podExecutor:
    tags: [v0.4.2]
    timeToLive: 10m
    maxParallelExecutions: 3
    preferredMaxQueueLength: 4
    templateOverrides:
      serviceAccountName: functions
      securityContext: {runAsUser: 1000}
      initContainer: {env: [{name: A, value: b}]}
      container:
        resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}
        envFrom: [{configMapRef: {name: more}}]
`)
	u.SetAnnotations(map[string]string{
		functionconfig.SettingsAnnotation: `{"minPods": 1, "maxConcurrency": 2, "maxQueue": 5, "podReadyTimeout": "90s", ` +
			`"prefork": 0}`,
	})
	user := int64(1000)
	want := &functionconfig.Config{
		Name: "set-namespace", UID: "uid-of-set-namespace", Generation: 3,
		Image: "set-namespace", Prefixes: []string{"", "gcr.io/kpt-fn"},
		Binary: &functionconfig.Binary{Tags: []string{"v0.4.0", "v0.4.1"}, Path: "set-namespace", Prefork: new(int)},
		Pod: &functionconfig.Pod{
			Tags: []string{"v0.4.2"}, MinPods: 1,
			Settings: cacheconfig.Entry{
				TTL: 10 * time.Minute, MaxPods: 3, MaxWaitlistLength: 4,
				MaxConcurrency: 2, MaxQueue: 5, ReadyTimeout: 90 * time.Second, Prefork: new(int),
				Overrides: &podspec.Overrides{
					ServiceAccount: "functions", SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user},
					Init: podspec.ContainerOverrides{Env: []corev1.EnvVar{{Name: "A", Value: "b"}}},
					Function: podspec.ContainerOverrides{
						Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
						Limits:   corev1.ResourceList{"memory": resource.MustParse("1Gi")},
						EnvFrom: []corev1.EnvFromSource{
							{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "more"}}},
						},
					},
				},
			},
		},
	}
	if diff := cmp.Diff(want, functionconfig.Decode(u, prefix)); diff != "" {
		t.Errorf("Decode (-want, +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	const image = "image: fn, "
	binary := func(fields string) string { return "{" + image + "binaryExecutor: {" + fields + "}}" }
	pod := func(fields string) string { return "{" + image + "podExecutor: {" + fields + "}}" }
	container := func(fields string) string { return pod("templateOverrides: {container: {" + fields + "}}") }
	tests := map[string]struct{ reason, spec, want string }{
		"no spec":     {"the CRD may not require it", "null", "spec.image is \"\""},
		"a text":      {"nor its type", "text", `spec is "text": it must be an object`},
		"no executor": {"nothing would be configured", "{image: fn}", "spec has no executor"},
		"registry": {
			"the registry belongs to the prefixes",
			"{image: ghcr.io/a/fn, goExecutor: {}}",
			`it must be "fn", without registry and path: list "ghcr.io/a" in spec.prefixes`,
		},
		"tag in image": {
			"tags have their own lists",
			"{image: 'fn:v1', goExecutor: {}}",
			"the last part of the image's name without tag",
		},
		"image's digest": {"a digest is of one tag", "{image: 'fn@sha256:00', goExecutor: {}}", "without tag"},
		"image's case":   {"no registry has it", "{image: Fn, goExecutor: {}}", `spec.image is "Fn"`},
		"image a number": {"types are strict", "{image: 5, goExecutor: {}}", "spec.image is 5: it must be a text"},
		"prefixes":       {"a text is no list", "{image: fn, prefixes: ghcr.io/a, goExecutor: {}}", "a list of texts"},
		"prefix's type":  {"the position is named", "{image: fn, prefixes: [a, 5], goExecutor: {}}", "spec.prefixes[1] is 5"},
		"URL": {
			"it looks like a prefix",
			"{image: fn, prefixes: ['https://ghcr.io/a'], goExecutor: {}}",
			`spec.prefixes has "https://ghcr.io/a"`,
		},
		"no tags":    {"nothing would run", binary("path: fn"), "spec.binaryExecutor.tags is empty: list the tags"},
		"empty tags": {"as here", binary("tags: [], path: fn"), "spec.binaryExecutor.tags is empty"},
		"tag's type": {
			"YAML makes numbers of some tags",
			binary("tags: [1.0], path: fn"),
			"in quotes if it looks like a number",
		},
		"no constraint": {"it is neither", binary("tags: ['not one'], path: fn"), "a tag or a version constraint"},
		"empty tag":     {"it is none", binary("tags: [''], path: fn"), `spec.binaryExecutor.tags has ""`},
		"no path":       {"the name is not taken from the image", binary("tags: [v1]"), `spec.binaryExecutor.path is ""`},
		"up":            {"no way out of the directory", binary("tags: [v1], path: ../../bin/sh"), `a path without ".."`},
		"up inside":     {"not even back into it", binary("tags: [v1], path: /functions/x/../fn"), `a path without ".."`},
		"path's type": {
			"types are strict",
			binary("tags: [v1], path: [fn]"),
			"spec.binaryExecutor.path is [\"fn\"]: it must be a text",
		},
		"binary's type": {
			"types are strict",
			"{image: fn, binaryExecutor: fn}",
			`spec.binaryExecutor is "fn": it must be an object`,
		},
		"short TTL": {
			"replicas could not agree on it",
			pod("timeToLive: 1s"),
			`spec.podExecutor.timeToLive is "1s": it must be a time of 5s or more`,
		},
		"TTL no unit": {"30 of what?", pod("timeToLive: 30"), "spec.podExecutor.timeToLive is 30"},
		"TTL's words": {"the form is shown", pod("timeToLive: soon"), "such as 30m"},
		"pods": {
			"types are strict",
			pod("maxParallelExecutions: '3'"),
			`maxParallelExecutions is "3": it must be a whole number`,
		},
		"fraction":   {"half a pod", pod("maxParallelExecutions: 1.5"), "maxParallelExecutions is 1.5"},
		"below zero": {"less than none", pod("preferredMaxQueueLength: -1"), "preferredMaxQueueLength is -1"},
		"large": {
			"more than any cluster",
			pod("preferredMaxQueueLength: 99999999999"),
			"preferredMaxQueueLength is 99999999999",
		},
		"account": {
			"Kubernetes would refuse each pod",
			pod("templateOverrides: {serviceAccountName: A b}"),
			"the name of a ServiceAccount",
		},
		"overrides": {"types are strict", pod("templateOverrides: [a]"), "spec.podExecutor.templateOverrides is"},
		"context": {
			"Kubernetes would refuse each pod",
			pod("templateOverrides: {securityContext: {runAsUser: root}}"),
			"must be a pod's security context",
		},
		"context field": {
			"a container's field does nothing here",
			pod("templateOverrides: {securityContext: {privileged: true}}"),
			`unknown field "privileged"`,
		},
		"quantity": {
			"the form is shown",
			container("resources: {limits: {memory: lots}}"),
			"spec.podExecutor.templateOverrides.container.resources.limits must be quantities",
		},
		"negative": {
			"Kubernetes would refuse each pod",
			container("resources: {limits: {memory: -1}}"),
			"memory is -1",
		},
		"beyond limit": {
			"Kubernetes would refuse each pod",
			container("resources: {requests: {cpu: 2}, limits: {cpu: 1}}"),
			"more than the limit of 1",
		},
		"env's type":  {"a map is what users try", container("env: {A: b}"), "a list of a container's variables"},
		"env's value": {"texts only", container("env: [{name: A, value: 5}]"), "a list of a container's variables"},
		"env's name": {
			"Kubernetes would refuse each pod",
			container("env: [{name: A=B, value: b}]"),
			`env[0] has the name "A=B"`,
		},
		"env twice": {
			"Kubernetes would refuse each pod",
			container("env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: a}}}]"),
			"both value and valueFrom",
		},
		"envFrom": {"types are strict", container("envFrom: more"), "a list of sources"},
		"our key": {
			"a function could pose as our programs by it",
			container("env: [{name: A, valueFrom: {secretKeyRef: {name: our-keys, key: tls.key}}}]"),
			`spec.podExecutor.templateOverrides.container names the Secret "our-keys"`,
		},
		"our keys": {"so it could by all of them", container("envFrom: [{secretRef: {name: our-keys}}]"), `"our-keys"`},
		"our keys at the start": {
			"an init container may keep them for the function",
			pod("templateOverrides: {initContainer: {envFrom: [{secretRef: {name: our-keys}}]}}"),
			`spec.podExecutor.templateOverrides.initContainer names the Secret "our-keys"`,
		},
		"pod's type": {
			"types are strict",
			"{image: fn, podExecutor: [a]}",
			`spec.podExecutor is ["a"]: it must be an object`,
		},
		"pods' tags": {
			"a text is no list",
			pod("tags: v1"),
			"spec.podExecutor.tags is \"v1\": it must be a list of texts",
		},
		"binary's tags": {"a text is no list", binary("tags: v1, path: fn"), "spec.binaryExecutor.tags is \"v1\""},
		"queue":         {"types are strict", pod("preferredMaxQueueLength: many"), `preferredMaxQueueLength is "many"`},
		"endless TTL":   {"longer than a time can be", pod("timeToLive: 9999999h"), `timeToLive is "9999999h"`},
		"account's type": {
			"types are strict",
			pod("templateOverrides: {serviceAccountName: 5}"),
			"serviceAccountName is 5: it must be a text",
		},
		"container": {
			"types are strict",
			pod("templateOverrides: {container: [a]}"),
			`templateOverrides.container is ["a"]: it must be an object`,
		},
		"init container": {
			"types are strict",
			pod("templateOverrides: {initContainer: 5}"),
			"templateOverrides.initContainer is 5: it must be an object",
		},
		"init's amounts": {
			"named by their place",
			pod("templateOverrides: {initContainer: {resources: {limits: {memory: x}}}}"),
			"initContainer.resources.limits must be quantities",
		},
		"resources": {
			"types are strict",
			container("resources: lots"),
			`container.resources is "lots": it must be an object`,
		},
		"prefixes' end": {
			"each is compared with each image",
			"{image: fn, goExecutor: {}, prefixes: [" + strings.Repeat("a, ", 101) + "]}",
			"spec.prefixes has 101 entries: it may have up to 100",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := functionconfig.Decode(object(t, "fn", tc.spec), prefix, "other-keys", "our-keys")
			if got := strings.Join(c.Problems, "; "); !strings.Contains(got, tc.want) {
				t.Errorf("problems are %q, want one with %q: %s", got, tc.want, tc.reason)
			}
			if c.Binary != nil || c.Pod != nil {
				t.Errorf("a part that is wrong is used: %+v", c)
			}
		})
	}
}

func TestOneWrongPartLeavesTheOther(t *testing.T) {
	c := functionconfig.Decode(
		object(t, "fn", "{image: fn, binaryExecutor: {tags: [v1], path: ../fn}, podExecutor: {timeToLive: 1h}}"),
		prefix,
	)
	if c.Binary != nil || c.Pod == nil || len(c.Problems) != 1 {
		t.Errorf("got %+v, want the pods' part and one problem", c)
	}
}

// TestGoExecutorIsOfOthers has a wrong part that is for Porch's own processes.
func TestGoExecutorIsOfOthers(t *testing.T) {
	for _, part := range []string{"5", "{tags: 5}", "{}"} {
		c := functionconfig.Decode(object(t, "fn", "{image: fn, podExecutor: {}, goExecutor: "+part+"}"), prefix)
		if len(c.Problems) > 0 || c.Pod == nil {
			t.Errorf("with goExecutor %s the problems are %q", part, c.Problems)
		}
	}
}

func TestSettingsAnnotation(t *testing.T) {
	tests := map[string]struct{ reason, annotation, want string }{
		"no object": {"the form is shown", "many", `not an object in JSON or YAML, such as {"minPods": 1}`},
		"list":      {"likewise", "[1]", "not an object"},
		"typing error": {
			"it would do nothing",
			"minpods: 1",
			"minpods is not known: the settings are minPods, maxConcurrency",
		},
		"twice": {"which one counts?", "{prefork: 1, prefork: 2}", "not an object"},
		"type": {
			"types are strict", "{maxQueue: many}",
			`annotation krm-function-runner.github.io/settings.maxQueue is "many"`,
		},
		"negative": {"less than none", "{minPods: -1}", "minPods is -1"},
		"prefork": {
			"no machine has so much to spare",
			"{prefork: 65}",
			"prefork is 65: it must be a whole number from 0 to 64",
		},
		"time":    {"the unit is missing", "{podReadyTimeout: 5}", "podReadyTimeout is 5"},
		"no tags": {"all tags are too many to keep pods of", "{minPods: 1}", "list them in spec.podExecutor.tags"},
		"too large": {
			"it is read with each change",
			"{a: " + strings.Repeat("x", 5000) + "}",
			"has 5005 bytes: it may have up to 4096",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u := object(t, "fn", "{image: fn, podExecutor: {timeToLive: 1h}}")
			u.SetAnnotations(map[string]string{functionconfig.SettingsAnnotation: tc.annotation})
			c := functionconfig.Decode(u, prefix)
			if got := strings.Join(c.Problems, "; "); !strings.Contains(got, tc.want) {
				t.Errorf("problems are %q, want one with %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// TestTagsAreTexts has a hundred tags, and tags that look like version constraints.
func TestTagsAreTexts(t *testing.T) {
	tags := make([]string, 100)
	for i := range tags {
		tags[i] = "v0." + strings.Repeat("1", i+1)
	}
	list := strings.Join(append(tags, "v0.4.x", "latest", "v1", "1.x"), ", ")
	c := functionconfig.Decode(object(t, "fn", "{image: fn, binaryExecutor: {path: fn, tags: ["+list+"]}}"), prefix)
	if len(c.Problems) > 0 || len(c.Binary.Tags) != 104 {
		t.Errorf("problems are %q", c.Problems)
	}
	over := functionconfig.Decode(
		object(t, "fn", "{image: fn, podExecutor: {tags: ["+strings.Repeat("v1,", 1001)+"]}}"),
		prefix,
	)
	if got := strings.Join(over.Problems, "; "); got != "spec.podExecutor.tags has 1001 entries: it may have up to 1000" {
		t.Errorf("problems are %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"spec":{"image":"fn","binaryExecutor":{"tags":["v1"],"path":"fn"}}}`, `{"spec":{"image":"a/b"}}`,
		`{"spec":{"image":"fn","prefixes":["",null,"x"],"podExecutor":{"timeToLive":"5s",` +
			`"templateOverrides":{"container":{"env":[{"name":"A"}]}}}}}`,
		`{"metadata":{"annotations":{"krm-function-runner.github.io/settings":"{minPods: 1}"}},` +
			`"spec":{"image":"fn","podExecutor":{"tags":["v1"]}}}`,
		`{"spec":{"image":"fn","podExecutor":{"maxParallelExecutions":1e99,` +
			`"templateOverrides":{"container":{"resources":{"limits":{"cpu":1}}}}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		u := new(unstructured.Unstructured)
		if yaml.Unmarshal(data, &u.Object) != nil || u.Object == nil {
			return
		}
		c := functionconfig.Decode(u, prefix)
		set := functionconfig.Compile([]*functionconfig.Config{c}, prefix)
		if c.Binary != nil && (len(c.Binary.Tags) == 0 || strings.Contains("/"+c.Binary.Path+"/", "/../")) {
			t.Errorf("binary %+v is used", c.Binary)
		}
		if c.Pod != nil && (c.Pod.Settings.TTL < 0 || c.Pod.Settings.MaxPods < 0 || c.Pod.MinPods < 0) {
			t.Errorf("pods with %+v are used", c.Pod)
		}
		for _, m := range set.Binaries {
			for _, image := range m.Images {
				if !strings.Contains(image, "/"+c.Image+":") {
					t.Errorf("%s is not an image of %q", image, c.Image)
				}
			}
		}
	})
}
