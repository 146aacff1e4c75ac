// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"errors"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

const chartDir = "../../deploy/chart"

// home is the registry of the images in the overlays.
const home = "ghcr.io/krm-function-runner"

// objects are decoded objects of Kubernetes by kind, namespace and name.
type objects map[string]map[string]any

// decode decodes YAML documents.
func decode(t *testing.T, documents ...string) objects {
	t.Helper()
	found := objects{}
	for _, document := range documents {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if object == nil {
			continue
		}
		about, _ := object["metadata"].(map[string]any)
		namespace, _ := about["namespace"].(string)
		key := object["kind"].(string) + " " + namespace + " " + about["name"].(string)
		if found[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		found[key] = object
	}
	return found
}

// installation is a release of the chart: its name, its namespace, and its values in the form of helm's option --set.
type installation struct {
	name, namespace string
	values          []string
	// texts are values in the form of --set-string.
	texts []string
	// file is the content of a file of values, or empty.
	file string
}

// template renders the chart as helm template does.
func (i installation) template() (output string, err error) {
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(i.file), &values); err != nil {
		return "", err
	}
	for _, value := range i.values {
		if err := strvals.ParseInto(value, values); err != nil {
			return "", err
		}
	}
	for _, text := range i.texts {
		if err := strvals.ParseIntoString(text, values); err != nil {
			return "", err
		}
	}
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		return "", err
	}
	cluster := chartutil.DefaultCapabilities.Copy()
	cluster.KubeVersion = chartutil.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}
	if !chartutil.IsCompatibleRange(chart.Metadata.KubeVersion, cluster.KubeVersion.Version) {
		return "", errors.New("the chart does not support the cluster's version: " + chart.Metadata.KubeVersion)
	}
	release := chartutil.ReleaseOptions{Name: i.name, Namespace: i.namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, release, cluster)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	var documents strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if base := path.Base(name); base != "NOTES.txt" && !strings.HasPrefix(base, "_") {
			documents.WriteString("---\n" + files[name] + "\n")
		}
	}
	return documents.String(), nil
}

// helm renders a release with values.
func helm(values ...string) (output string, err error) {
	return installation{name: "rel", namespace: "rel-ns", values: values}.template()
}

// asOverlay gives the chart's output the names and namespaces of the overlays.
func asOverlay(output string) []string {
	names := regexp.MustCompile(`\brel-(gateway|pod-manager|image-resolver|issuer|function-configs|function-pods|` +
		`api-server|dns|registries)\b`)
	output = strings.NewReplacer("rel-ns", "porch-system", "function-pods-ns", "porch-fn-system",
		"rel-runner", "porch-fn-runner", "rel-authority", "function-runner-authority").Replace(output)
	output = names.ReplaceAllString(output, "$1")
	output = regexp.MustCompile(`\brel\b`).ReplaceAllString(output, "function-runner")
	return strings.Split("\n"+output, "\n---\n")
}

// simplify removes from an object what the chart has in addition, and sorts lists whose order has no meaning: several
// releases may be in one namespace, so that selectors name the release; the issuer's Secrets have the release's name.
func simplify(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
			delete(value, label)
		}
		for key, part := range value {
			if variables, ok := part.([]any); ok && key == "env" {
				value[key] = withoutIssuer(variables)
			}
			simplify(value[key])
		}
		if match, ok := value["matchLabels"].(map[string]any); ok && len(match) == 0 {
			delete(value, "matchLabels") // they named only the release
		}
	case []any:
		for _, part := range value {
			simplify(part)
		}
	}
}

// withoutIssuer returns environment variables by name, without the one that names the issuer's Secrets.
func withoutIssuer(variables []any) []any {
	name := func(v any) string { return v.(map[string]any)["name"].(string) }
	variables = slices.DeleteFunc(variables, func(v any) bool { return name(v) == "FNR_ISSUER_CERTIFICATES" })
	slices.SortFunc(variables, func(a, b any) int { return strings.Compare(name(a), name(b)) })
	return variables
}

// TestChartGivesTheObjectsOfOverlays renders the chart in both modes, and compares its objects with the objects that
// kustomize builds.
func TestChartGivesTheObjectsOfOverlays(t *testing.T) {
	for mode, overlay := range map[string]string{"microservices": "porch-microservices", "function-runner": "porch"} {
		t.Run(mode, func(t *testing.T) {
			built, err := manifests.Build("../../deploy/overlays/" + overlay)
			if err != nil {
				t.Fatal(err)
			}
			var documents []string
			for _, document := range built {
				documents = append(documents, string(document))
			}
			out, err := helm("mode="+mode, "functions.namespace=function-pods-ns", "functions.createNamespace=false",
				"callers.namespaces={rel-ns}", "image.registry="+home, "image.tag=latest")
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want, got := decode(t, documents...), decode(t, asOverlay(out)...)
			for _, found := range []objects{want, got} {
				for _, object := range found {
					simplify(object)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-kustomize, +helm):\n%s", diff)
			}
		})
	}
}

// TestChartHasSettings changes a setting of a program, and adds one.
func TestChartHasSettings(t *testing.T) {
	deployment := rendered(t, "programs.gateway.settings.FNR_SERVE_DRAIN_DELAY=7s",
		"programs.gateway.settings.FNR_TELEMETRY_LOG_VERBOSITY=4")["Deployment rel-ns rel-gateway"]
	text, err := yaml.Marshal(deployment)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"name: FNR_SERVE_DRAIN_DELAY\n          value: 7s", "name: FNR_TELEMETRY_LOG_VERBOSITY\n          value: \"4\"",
	} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "value: 5s") {
		t.Errorf("the chart's own value is there too:\n%s", text)
	}
}

// TestChartHasGracePeriods sets each program's grace period, which a longer limit of evaluations requires.
func TestChartHasGracePeriods(t *testing.T) {
	for _, tc := range []struct {
		mode, program, deployment string
		standard                  int64
	}{
		{"microservices", "gateway", "rel-gateway", 330},
		{"microservices", "pod-manager", "rel-pod-manager", 330},
		{"microservices", "image-resolver", "rel-image-resolver", 60},
		{"function-runner", "function-runner", "rel", 330},
	} {
		for value, want := range map[string]int64{"630": 630, "null": tc.standard} {
			objects := rendered(t, "mode="+tc.mode, "programs."+tc.program+".terminationGracePeriodSeconds="+value)
			deployment := as[appsv1.Deployment](t, objects["Deployment rel-ns "+tc.deployment])
			if got := ptr.Deref(deployment.Spec.Template.Spec.TerminationGracePeriodSeconds, 0); got != want {
				t.Errorf("%s with %s: %d, want %d", tc.program, value, got, want)
			}
		}
	}
}

// TestChartWritesNumbersOfFilesInDigits checks numbers of a values file, which Helm reads as floating-point numbers.
func TestChartWritesNumbersOfFilesInDigits(t *testing.T) {
	out, err := installation{name: "rel", namespace: "rel-ns", file: `
functions: {maxPods: 2000000}
programs:
  gateway:
    settings:
      FNR_MEMORY_BUDGET_BYTES: 536870912
      FNR_TELEMETRY_LOG_VERBOSITY: 4
      OTEL_TRACES_SAMPLER_ARG: 0.25
      FNR_LOG_FUNCTION_OUTPUT: true
`}.template()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"FNR_MEMORY_BUDGET_BYTES\n          value: \"536870912\"\n",
		"FNR_TELEMETRY_LOG_VERBOSITY\n          value: \"4\"\n",
		"OTEL_TRACES_SAMPLER_ARG\n          value: \"0.25\"\n",
		"FNR_LOG_FUNCTION_OUTPUT\n          value: \"true\"\n",
		"count/pods: \"2000000\"\n",
		"count/services: \"2000000\"\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in the output", want)
		}
	}
}

// TestChartRejectsWrongValues checks that an error names the wrong value.
func TestChartRejectsWrongValues(t *testing.T) {
	for _, tc := range []struct{ set, want, reason string }{
		{"mode=prod", "mode", "there is no such mode"},
		{"programs.gatway.replicas=1", "gatway", "a setting would be lost without a word"},
		{"programs.gateway.replicas=0", "replicas", "an autoscaler starts no first replica"},
		{"programs.gateway.terminationGracePeriodSeconds=0", "GracePeriod", "evaluations would be interrupted"},
		{"programs.pod-manager.replicas=0", "replicas", "as the gateway"},
		{"callers.namespaces={Porch}", "namespaces", "there can be no such namespace"},
		{"callers.namespace=porch-system", "namespace", "it is a list"},
		{"programs.gateway.settings.DRAIN=5s", "DRAIN", "settings begin with FNR_"},
		{"functions.namespace=Functions", "namespace", "Kubernetes would reject it"},
	} {
		if _, err := helm(tc.set); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error with %q: %s", tc.set, err, tc.want, tc.reason)
		}
	}
}

// rendered returns the chart's objects.
func rendered(t *testing.T, values ...string) objects {
	t.Helper()
	out, err := helm(values...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return decode(t, strings.Split("\n"+out, "\n---\n")...)
}

// as converts a part of an object to a Go type.
func as[T any](t *testing.T, part any) T {
	t.Helper()
	var typed T
	text, err := yaml.Marshal(part)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &typed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

// TestChartPoliciesSelectPodsOfTheReleaseOnly checks the selectors of network policies: pods of Porch, or of another
// release, may be in the same namespace. Callers of port 9445 may be any pods.
func TestChartPoliciesSelectPodsOfTheReleaseOnly(t *testing.T) {
	const instance = "app.kubernetes.io/instance"
	for _, mode := range []string{"microservices", "function-runner"} {
		policies := 0
		for key, object := range rendered(t, "mode="+mode) {
			if !strings.HasPrefix(key, "NetworkPolicy ") {
				continue
			}
			policies++
			policy := as[networkingv1.NetworkPolicy](t, object)
			if own := policy.Spec.PodSelector.MatchLabels[instance]; policy.Namespace == "rel-ns" && own != "rel" {
				t.Errorf("%s: %s selects pods of other releases", mode, key)
			}
			for _, rule := range policy.Spec.Ingress {
				for _, peer := range rule.From {
					port, pods := rule.Ports[0].Port, peer.PodSelector
					if pods != nil && port.IntVal != 9445 && pods.MatchLabels[instance] != "rel" {
						t.Errorf("%s: %s admits pods of other releases at %s", mode, key, port)
					}
				}
			}
		}
		if policies < 5 {
			t.Errorf("%s: %d network policies, want at least 5", mode, policies)
		}
	}
}

// TestChartAdmitsCallersOfOtherNamespaces checks the namespaces whose pods may call port 9445: the release's own, and
// the value's.
func TestChartAdmitsCallersOfOtherNamespaces(t *testing.T) {
	for mode, name := range map[string]string{"microservices": "rel-gateway", "function-runner": "rel"} {
		for value, want := range map[string][]string{
			"":                                  {"", "porch-system"}, // where docs/install.md expects Porch
			"callers.namespaces={ci,argocd}":    {"", "ci", "argocd"},
			"callers.namespaces={rel-ns}":       {""},
			"callers=null":                      {""}, // as after an upgrade with --reuse-values
			"callers.namespaces={porch-system}": {"", "porch-system"},
		} {
			values := []string{"mode=" + mode}
			if value != "" {
				values = append(values, value)
			}
			policy := as[networkingv1.NetworkPolicy](t, rendered(t, values...)["NetworkPolicy rel-ns "+name])
			var got []string
			for _, peer := range policy.Spec.Ingress[0].From {
				namespace := ""
				if peer.NamespaceSelector != nil {
					namespace = peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]
				}
				got = append(got, namespace)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: namespaces (-want, +got):\n%s", mode, value, diff)
			}
		}
	}
}

// TestChartScalesFromReplicas checks that the value replicas is the minimum of an autoscaler, and that the maximum is
// not below it.
func TestChartScalesFromReplicas(t *testing.T) {
	type bounds struct{ Min, Max any }
	for _, tc := range []struct {
		program, replicas string
		want              bounds
	}{
		{"gateway", "", bounds{2.0, 10.0}},
		{"gateway", "1", bounds{1.0, 10.0}},
		{"gateway", "12", bounds{12.0, 12.0}},
		{"gateway", "null", bounds{2.0, 10.0}},
		{"pod-manager", "", bounds{2.0, 5.0}},
		{"pod-manager", "3", bounds{3.0, 5.0}},
	} {
		var values []string
		if tc.replicas != "" {
			values = append(values, "programs."+tc.program+".replicas="+tc.replicas)
		}
		spec := rendered(t, values...)["HorizontalPodAutoscaler rel-ns rel-"+tc.program]["spec"].(map[string]any)
		if got := (bounds{spec["minReplicas"], spec["maxReplicas"]}); got != tc.want {
			t.Errorf("%s with replicas %q: %v, want %v", tc.program, tc.replicas, got, tc.want)
		}
	}
}

// TestChartChecksTheName checks that the chart rejects names of releases with which Kubernetes would reject some of the
// objects, after it created others.
func TestChartChecksTheName(t *testing.T) {
	for _, tc := range []struct {
		mode, name, want string
	}{
		{"microservices", strings.Repeat("a", 39), ""},
		{"microservices", strings.Repeat("a", 40), "at most 39 characters"},
		{"function-runner", strings.Repeat("a", 53), ""},
		{"microservices", "a.b", "no dot"},
		{"function-runner", "a.b", "no dot"},
		{"microservices", "123", "begin with a letter"},
		{"function-runner", "1a", "begin with a letter"},
	} {
		_, err := installation{name: tc.name, namespace: "rel-ns", values: []string{"mode=" + tc.mode}}.template()
		if (err != nil) != (tc.want != "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s %s: %v, want %q", tc.mode, tc.name, err, tc.want)
		}
	}
}

// TestChartQuotesNames checks that names that YAML reads as truth values, numbers or null stay text.
func TestChartQuotesNames(t *testing.T) {
	for _, mode := range []string{"microservices", "function-runner"} {
		out, err := installation{
			name: "off", namespace: "1e3",
			values: []string{"mode=" + mode}, texts: []string{"functions.namespace=123,image.tag=5"},
		}.template()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if bare := regexp.MustCompile(`(?m)^.*: (off|1e3|123)$`).FindAllString(out, -1); len(bare) > 0 {
			t.Errorf("%s: unquoted names:\n%s", mode, strings.Join(bare, "\n"))
		}
	}
}
