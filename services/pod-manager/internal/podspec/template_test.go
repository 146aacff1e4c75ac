// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// pod returns a template of a pod whose spec is this.
func pod(spec string) string { return "apiVersion: v1\nkind: Pod\nspec: " + spec + "\n" }

const goodPod = "{containers: [{name: function, command: [/w]}]}"

func TestParseWarns(t *testing.T) {
	foreign := `template: container "copy-wrapper-server" (docker.io/nephio/porch-wrapper-server:latest) has no ` +
		`securityContext, and it is not known which one it works with: a namespace that enforces Pod Security ` +
		`"restricted" refuses it`
	tests := map[string]struct {
		reason string
		data   map[string]string
		want   []string
	}{
		"porch": {
			"the documentation's example has a field in the wrong place",
			configMap(t, "porch"),
			[]string{`template: unknown field "annotations" is ignored: annotations belong under metadata`},
		},
		"foreign init": {"what will be refused is better known before", configMap(t, "foreign-init"), []string{foreign}},
		"outspoken":    {"a template that says all it needs to", configMap(t, "outspoken"), nil},
		"settings": {
			"variables do not configure the wrapper server",
			map[string]string{"template": pod("{containers: [{name: function, command: [/w], " +
				"env: [{name: FNR_CONFINE, value: require}]}]}")},
			[]string{`template: container "function" sets FNR_CONFINE, which has no effect: the wrapper server takes its ` +
				`settings as arguments only, which the template can have`},
		},
		"unknown field": {
			"a typing error must not stay unseen",
			map[string]string{"template": pod("{containers: [{name: function, command: [/w], comand: [/x]}]}")},
			[]string{`template: unknown field "spec.containers[0].comand" is ignored`},
		},
		"service": {
			"a typing error in the Service neither",
			map[string]string{"template": pod(goodPod), "serviceTemplate": "{apiVersion: v1, kind: Service, spec: {prots: []}}"},
			[]string{`serviceTemplate: unknown field "spec.prots" is ignored`},
		},
		"twice": {
			"of a field that is there twice, one is lost",
			map[string]string{"template": pod(goodPod) + "spec: " + goodPod},
			[]string{`template: error converting YAML to JSON: yaml: unmarshal errors: line 4: key "spec" already set in map`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := podspec.Parse("1", tc.data, defaults())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, warnings); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct {
		reason  string
		pod     string
		service string
		want    []string
	}{
		"no YAML": {"a user sees which key", "{", "", []string{"template: it is not a YAML object"}},
		"a text":  {"a text is no pod", "hello", "", []string{"template: it is not a YAML object"}},
		"empty":   {"nothing is no pod", "", "", []string{`template: it must be of kind Pod, and is of ""`}},
		"other kind": {
			"a Deployment is no pod",
			"{apiVersion: v1, kind: Deployment}", "",
			[]string{`of kind Pod, and is of "Deployment"`},
		},
		"other version": {
			"there is one version of pods",
			"{apiVersion: apps/v1, kind: Pod}", "",
			[]string{`apiVersion v1, and is of "apps/v1"`},
		},
		"wrong type": {
			"what the API server would not take",
			pod("{containers: 3}"), "",
			[]string{"template: it is not a v1 Pod", "containers"},
		},
		"other container": {
			"the names found help to see which one it is",
			pod("{containers: [{name: fn}, {name: helper}]}"), "",
			[]string{`no container is named "function"`, "containers found: fn, helper"},
		},
		"no container": {"none at all", pod("{}"), "", []string{"containers found: none"}},
		"init container": {
			"an init container is not the one",
			pod("{initContainers: [{name: function}], containers: [{name: a}]}"), "",
			[]string{"containers found: a"},
		},
		"no command": {
			"the image's own entrypoint is the function's",
			pod("{containers: [{name: function}]}"), "",
			[]string{`container "function" has no command`},
		},
		"same name": {
			"Kubernetes refuses it at each pod",
			pod("{containers: [{name: function, command: [/w]}, {name: function}]}"), "",
			[]string{`two containers are named "function"`},
		},
		"no volume": {
			"so it does here; all problems are named together",
			pod("{containers: [{name: function, volumeMounts: [{name: tools, mountPath: /t}]}]}"), "",
			[]string{`container "function" mounts volume "tools", which is not among the pod's volumes`, "has no command"},
		},
		"service": {
			"the Service is looked at too, and both are named",
			"{", "{apiVersion: v1, kind: Pod}",
			[]string{"template: it is not", `serviceTemplate: it must be of kind Service, and is of "Pod"`},
		},
		"service port": {
			"pods are called at one port",
			pod(goodPod), "{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}, {port: 9464}]}}",
			[]string{"serviceTemplate: it must have port 9446", "ports found: 80, 9464"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			data := map[string]string{"template": tc.pod}
			if tc.service != "" {
				data["serviceTemplate"] = tc.service
			}
			_, _, err := podspec.Parse("1", data, defaults())
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Parse: %v, want an error with %q: %s", err, want, tc.reason)
				}
			}
		})
	}
	_, _, err := podspec.Parse("1", map[string]string{"pod": "", "service": ""}, defaults())
	if err == nil || !strings.Contains(err.Error(), "keys found: pod, service") {
		t.Errorf("Parse without the key: %v, want an error with the keys that there are", err)
	}
}

// TestFilledIn checks what a template's words do to what is filled in.
func TestFilledIn(t *testing.T) {
	const yes, no, unsaid = "true", "false", "-"
	tests := map[string]struct {
		reason                      string
		podContext, context         string
		wantUser                    int64 // 0 is none
		wantNonRoot, wantEscalation string
	}{
		"nothing said": {"all is filled in", "{}", "{}", 65532, yes, no},
		"not root":     {"a user who may be is found", "{runAsNonRoot: true}", "{}", 65532, unsaid, no},
		"a user":       {"its user is not root, so that can be required", "{runAsUser: 1000}", "{}", 0, yes, no},
		"container's user": {
			"the container's word counts more than the pod's",
			"{runAsUser: 0}", "{runAsUser: 1000}", 1000, yes, no,
		},
		"root":                 {"a template that asks for root gets it", "{runAsUser: 0}", "{}", 0, unsaid, no},
		"root allowed":         {"nor is the image's user replaced then", "{}", "{runAsNonRoot: false}", 0, no, no},
		"privileged":           {"Kubernetes refuses the rest beside it", "{}", "{privileged: true}", 0, unsaid, unsaid},
		"administrator":        {"as it does here", "{}", "{capabilities: {add: [SYS_ADMIN]}}", 65532, yes, unsaid},
		"escalation asked for": {"setuid programs need it", "{}", "{allowPrivilegeEscalation: true}", 65532, yes, yes},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := pod("{securityContext: " + tc.podContext + ", containers: [{name: function, command: [/w], " +
				"securityContext: " + tc.context + "}]}")
			template, _, err := podspec.Parse("1", map[string]string{"template": text}, defaults())
			if err != nil {
				t.Fatal(err)
			}
			sc := builder().Pod(request(template)).Spec.Containers[0].SecurityContext
			say := func(b *bool) string {
				if b == nil {
					return unsaid
				}
				return map[bool]string{true: yes, false: no}[*b]
			}
			user := int64(0)
			if sc.RunAsUser != nil {
				user = *sc.RunAsUser
			}
			if nonRoot, escalation := say(sc.RunAsNonRoot), say(sc.AllowPrivilegeEscalation); user != tc.wantUser ||
				nonRoot != tc.wantNonRoot || escalation != tc.wantEscalation {
				t.Errorf("runAsUser %d, runAsNonRoot %s, allowPrivilegeEscalation %s, want %d, %s, %s: %s",
					user, nonRoot, escalation, tc.wantUser, tc.wantNonRoot, tc.wantEscalation, tc.reason)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"porch", "foreign-init", "outspoken"} {
		data := configMap(f, name)
		f.Add(data["template"], data["serviceTemplate"])
	}
	for _, seed := range []string{
		"", "{", "null", "[]", "&a [*a, *a]", "kind: Pod\nkind: Pod",
		"{apiVersion: v1, kind: Pod, metadata: {annotations: {a: 1, b: null, c: {}}}}",
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, pod, service string) {
		template, _, err := podspec.Parse("1", map[string]string{"template": pod, "serviceTemplate": service}, defaults())
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without a text")
			}
			return
		}
		r := request(template)
		built := builder().Pod(r)
		if _, ok := podspec.Identify(built); !ok || built.Spec.Containers[0].Name != podspec.ContainerName {
			t.Errorf("the pod of a template that was taken is not one of ours: %v", built)
		}
		if got := builder().Service(r); got.Spec.Selector[podspec.LabelID] != built.Labels[podspec.LabelID] {
			t.Errorf("its Service is not the pod's")
		}
	})
}
