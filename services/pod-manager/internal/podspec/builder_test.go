// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

var update = flag.Bool("update", false, "write the golden files anew")

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// defaults returns settings as a service has them.
func defaults() podspec.Defaults {
	return podspec.Defaults{
		WrapperImage: "registry.example/wrapper-server:v1", TerminationGracePeriod: 5*time.Minute + 10*time.Second,
	}
}

// imageVolume returns the same settings with the other launcher.
func imageVolume() podspec.Defaults {
	d := defaults()
	d.Launcher = podspec.ImageVolume
	return d
}

// configMap reads the data of a ConfigMap in testdata/templates.
func configMap(t testing.TB, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "templates", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Data map[string]string }
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Fatal(err)
	}
	return object.Data
}

// parsed returns a template of testdata/templates.
func parsed(t testing.TB, name string) podspec.Template {
	t.Helper()
	template, _, err := podspec.Parse("4711", configMap(t, name), defaults())
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// request asks for a pod of a function of the catalog, whose user is root.
func request(template podspec.Template) podspec.Request {
	return podspec.Request{
		Workload: podspec.Workload{
			Function: podspec.Function{
				Reference: "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5", Digest: digest,
				Command: []string{"function", "--flag", "$(HOME)"},
			},
			Concurrency: 8,
		},
		Template: template, Name: "set-namespace-v045-1-e3b0c442-abcde", Slot: 1,
		ReclaimAfter: time.Unix(1767225600, 0),
	}
}

func builder() podspec.Builder {
	return podspec.Builder{
		Namespace: "porch-fn-system", MaxMessageBytes: 6291456, PullSecret: "auth-secret",
		Args: []string{"--serve-drain-delay=0s"},
	}
}

// TestBuild compares whole objects with testdata/golden.
func TestBuild(t *testing.T) {
	private := request(podspec.Default(defaults()))
	private.Function.PullSecret = true
	private.Function.User = "1000:1000"
	private.Function.Architecture = "arm64"
	private.Slot = 2
	private.Concurrency = 16
	private.Prefork = new(int)
	private.MaxEvaluationTime = 10 * time.Minute
	private.Resources = &corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")},
	}
	outspoken := request(parsed(t, "outspoken"))
	outspoken.Function.PullSecret = true
	outspoken.Function.Architecture = "amd64"
	always := builder()
	always.AlwaysPullSecret = true

	tests := map[string]struct {
		reason  string
		builder podspec.Builder
		request podspec.Request
	}{
		"builtin": {
			"the default: pinned by digest, hardened, with an init container",
			builder(), request(podspec.Default(defaults())),
		},
		"image-volume": {"the other launcher mounts the image", builder(), request(podspec.Default(imageVolume()))},
		"private": {
			"a pull secret, an image with a user, resources, processes and a time of its own",
			builder(), private,
		},
		"pull-secret": {
			"the wrapper server's image may need a pull secret too", always, request(podspec.Default(defaults())),
		},
		"porch": {
			"the documentation's template with our image is hardened as a whole",
			builder(), request(parsed(t, "porch")),
		},
		"foreign-init": {
			"what a foreign image can do with is not known: it is left as it is",
			builder(), request(parsed(t, "foreign-init")),
		},
		"outspoken": {"what a template says stays, but for what makes the pod ours", builder(), outspoken},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := document(t, tc.builder.Pod(tc.request)) + "---\n" + document(t, tc.builder.Service(tc.request))
			path := filepath.Join("testdata", "golden", name+".yaml")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got, update with -update):\n%s", tc.reason, diff)
			}
			for _, key := range porchKey.FindAllString(got, -1) {
				if !slices.Contains(porchKeys, key) {
					t.Errorf("%s is in Porch's domain, and Porch does not define it", key)
				}
			}
		})
	}
}

// porchKey matches keys in Porch's domain, and porchKeys are the ones that Porch defines.
var (
	porchKey  = regexp.MustCompile(`\bfn\.kpt\.dev/[\w-]+`)
	porchKeys = []string{"fn.kpt.dev/image", "fn.kpt.dev/template-version", "fn.kpt.dev/reclaim-after"}
)

// TestPodsOfAFunctionAreSpread holds that the pods of one function count for each other, and what a template
// says stays.
func TestPodsOfAFunctionAreSpread(t *testing.T) {
	first, second := request(podspec.Default(defaults())), request(podspec.Default(defaults()))
	second.Slot = 2
	other := request(podspec.Default(defaults()))
	other.Function.Reference = "ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.4.5"
	a, b, c := builder().Pod(first), builder().Pod(second), builder().Pod(other)
	of := func(pod *corev1.Pod) string { return pod.Labels[podspec.LabelPool] }
	if of(a) != of(b) || of(a) == of(c) {
		t.Errorf("the pools are %q, %q and %q", of(a), of(b), of(c))
	}
	constraint := a.Spec.TopologySpreadConstraints[0]
	if constraint.LabelSelector.MatchLabels[podspec.LabelPool] != of(b) ||
		constraint.WhenUnsatisfiable != corev1.ScheduleAnyway {
		t.Errorf("pods are spread by %+v", constraint)
	}

	for field, want := range map[string]int{
		"topologySpreadConstraints: [{maxSkew: 3, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]": 1,
		"affinity: {podAntiAffinity: {}}": 0,
		"affinity: {nodeAffinity: {}}":    1,
	} {
		data := configMap(t, "porch")
		data["template"] = strings.Replace(data["template"], "spec:\n", "spec:\n  "+field+"\n", 1)
		template, _, err := podspec.Parse("1", data, defaults())
		if err != nil {
			t.Fatal(err)
		}
		got := builder().Pod(request(template)).Spec.TopologySpreadConstraints
		if len(got) != want || (want == 1 && strings.HasPrefix(field, "topology") && got[0].MaxSkew != 3) {
			t.Errorf("with %s, pods are spread by %+v", field, got)
		}
	}
}

func document(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestImage(t *testing.T) {
	tests := map[string]struct {
		reason    string
		reference string
		want      string
		policy    corev1.PullPolicy
	}{
		"pinned": {
			"all pods of a function run the same image",
			"example.com/fn:v1", "example.com/fn:v1@" + digest, corev1.PullIfNotPresent,
		},
		"latest": {
			"a digest need not be asked for at each start",
			"example.com/fn:latest", "example.com/fn:latest@" + digest, corev1.PullIfNotPresent,
		},
		"no tag": {
			"the digest is enough",
			"localhost:5000/fn", "localhost:5000/fn@" + digest, corev1.PullIfNotPresent,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, r := builder(), request(podspec.Default(defaults()))
			r.Function.Reference = tc.reference
			c := b.Pod(r).Spec.Containers[0]
			if c.Image != tc.want || c.ImagePullPolicy != tc.policy {
				t.Errorf("image %q, pulled %q, want %q, %q: %s", c.Image, c.ImagePullPolicy, tc.want, tc.policy, tc.reason)
			}
			if o, _ := podspec.Identify(b.Pod(r)); o.ByTag {
				t.Errorf("a pod with the image %s is taken to be by tag", c.Image)
			}
		})
	}
}

// TestWrapperPullPolicy looks at how the wrapper server's image gets to the node.
func TestWrapperPullPolicy(t *testing.T) {
	tests := map[string]struct {
		reason string
		image  string
		want   corev1.PullPolicy
	}{
		"tag":    {"a release stays what it is", "registry.example/wrapper-server:v1", corev1.PullIfNotPresent},
		"digest": {"", "registry.example/wrapper-server@" + digest, corev1.PullIfNotPresent},
		"latest by digest": {
			"Kubernetes would ask a registry at each cold start",
			"registry.example/wrapper-server:latest@" + digest, corev1.PullIfNotPresent,
		},
		"latest": {
			"a user who builds it again wants the new one",
			"registry.example/wrapper-server:latest", "",
		},
		"no tag":            {"which means latest; a port is no tag", "localhost:5000/wrapper-server", ""},
		"no tag but digest": {"", "localhost:5000/wrapper-server@" + digest, corev1.PullIfNotPresent},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := defaults()
			d.WrapperImage = tc.image
			if got := builder().Pod(request(podspec.Default(d))).Spec.InitContainers[0].ImagePullPolicy; got != tc.want {
				t.Errorf("the init container's image is pulled %q, want %q: %s", got, tc.want, tc.reason)
			}
			d.Launcher = podspec.ImageVolume
			if got := builder().Pod(request(podspec.Default(d))).Spec.Volumes[0].Image.PullPolicy; got != tc.want {
				t.Errorf("the image volume is pulled %q, want %q: %s", got, tc.want, tc.reason)
			}
			text := pod("{initContainers: [{name: copy, image: '" + tc.image + "', imagePullPolicy: Always}], containers: " +
				"[{name: function, command: [/w], imagePullPolicy: Always}]}")
			template, _, err := podspec.Parse("1", map[string]string{"template": text}, d)
			if err != nil {
				t.Fatal(err)
			}
			spec := builder().Pod(request(template)).Spec
			init, function := spec.InitContainers[0].ImagePullPolicy, spec.Containers[0].ImagePullPolicy
			if init != corev1.PullAlways || function != corev1.PullAlways {
				t.Errorf("images are pulled %q and %q, want what the template says", init, function)
			}
		})
	}
}

func TestUser(t *testing.T) {
	const no = -1
	tests := map[string]struct {
		reason string
		user   string
		want   int64
	}{
		"none":            {"no user is root", "", 65532},
		"root":            {"root is not what functions need", "root", 65532},
		"zero":            {"nor by number", "0:0", 65532},
		"name":            {"the kubelet cannot tell whether a name is root's", "node", 65532},
		"number":          {"a number is the image's own choice", "1000", no},
		"number of group": {"the group is its own choice too", "65532:65532", no},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := request(podspec.Default(defaults()))
			r.Function.User = tc.user
			sc := builder().Pod(r).Spec.Containers[0].SecurityContext
			got := int64(no)
			if sc.RunAsUser != nil {
				got = *sc.RunAsUser
			}
			if got != tc.want || !*sc.RunAsNonRoot {
				t.Errorf("image user %q: runAsUser %d, runAsNonRoot %v, want %d, true: %s",
					tc.user, got, *sc.RunAsNonRoot, tc.want, tc.reason)
			}
		})
	}
}

func TestPodsShareNothing(t *testing.T) {
	template := parsed(t, "outspoken")
	first := builder().Pod(request(template))
	first.Labels["team"] = "red"
	first.Spec.Containers[0].Args[0] = "--changed"
	first.Spec.Containers[0].Env[0].Value = "changed"
	first.Spec.NodeSelector["disk"] = "slow"
	again := builder().Pod(request(template))
	if again.Labels["team"] != "blue" || again.Spec.Containers[0].Args[0] != "--verbosity" ||
		again.Spec.NodeSelector["disk"] != "fast" {
		t.Errorf("a pod changed with another one of its template: %v", again)
	}
}

func TestVersions(t *testing.T) {
	version := podspec.Default(defaults()).Version()
	if again := podspec.Default(defaults()).Version(); again != version {
		t.Errorf("the built-in template has versions %q and %q: replicas and restarts have to agree", version, again)
	}
	if other := podspec.Default(imageVolume()).Version(); other == version {
		t.Errorf("another launcher has version %q too: its pods would stay", other)
	}
	if got := parsed(t, "porch").Version(); got != "4711" {
		t.Errorf("a ConfigMap's template has version %q, want its resourceVersion", got)
	}
}
