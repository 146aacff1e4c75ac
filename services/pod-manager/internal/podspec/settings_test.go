// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// TestSettingsVersion changes one thing at a time.
func TestSettingsVersion(t *testing.T) {
	version := func(change func(*podspec.Builder, *podspec.Request, *podspec.Defaults)) string {
		b, r, d := builder(), podspec.Request{Workload: podspec.Workload{Concurrency: 8}, Name: "a", Slot: 1}, defaults()
		change(&b, &r, &d)
		template, _, err := podspec.Parse("4711", configMap(t, "porch"), d)
		if err != nil {
			t.Fatal(err)
		}
		r.Template = template
		return b.SettingsVersion(r)
	}
	first := version(func(*podspec.Builder, *podspec.Request, *podspec.Defaults) {})
	tests := map[string]struct {
		reason string
		change func(*podspec.Builder, *podspec.Request, *podspec.Defaults)
		same   bool
	}{
		"nothing": {
			"replicas and restarts have to agree",
			func(*podspec.Builder, *podspec.Request, *podspec.Defaults) {}, true,
		},
		"name and slot": {
			"each pod has its own",
			func(_ *podspec.Builder, r *podspec.Request, _ *podspec.Defaults) {
				r.Name = "b"
				r.Slot = 2
			}, true,
		},
		"end": {
			"it changes while the pod lives",
			func(_ *podspec.Builder, r *podspec.Request, _ *podspec.Defaults) { r.ReclaimAfter = time.Unix(1, 0) }, true,
		},
		"function": {"each pool has its own, by digest", func(_ *podspec.Builder, r *podspec.Request, _ *podspec.Defaults) {
			r.Function.Command = []string{"/fn"}
		}, true},
		"request size": {
			"it is an argument",
			func(b *podspec.Builder, _ *podspec.Request, _ *podspec.Defaults) { b.MaxMessageBytes++ }, false,
		},
		"pull secret": {
			"",
			func(b *podspec.Builder, _ *podspec.Request, _ *podspec.Defaults) { b.PullSecret = "other" }, false,
		},
		"secret": {
			"each pod has its own",
			func(_ *podspec.Builder, r *podspec.Request, _ *podspec.Defaults) { r.Secret = secret }, true,
		},
		"authorities": {
			"pods that do not know a new one reject callers",
			func(_ *podspec.Builder, r *podspec.Request, _ *podspec.Defaults) {
				r.TLS = &podspec.TLS{Authorities: "PEM"}
			},
			false,
		},
		"telemetry": {"where to send it is a variable", func(b *podspec.Builder, _ *podspec.Request, _ *podspec.Defaults) {
			b.Env = append(b.Env, corev1.EnvVar{Name: "OTEL_X"})
		}, false},
		"concurrency": {
			"it is a variable",
			func(_ *podspec.Builder, r *podspec.Request, _ *podspec.Defaults) { r.Concurrency++ }, false,
		},
		"prefork": {
			"none is not the wrapper server's choice",
			func(_ *podspec.Builder, r *podspec.Request, _ *podspec.Defaults) { r.Prefork = new(int) }, false,
		},
		"time": {
			"it is a variable",
			func(_ *podspec.Builder, r *podspec.Request, _ *podspec.Defaults) { r.MaxEvaluationTime = time.Hour }, false,
		},
		"resources": {"the function's own", func(_ *podspec.Builder, r *podspec.Request, _ *podspec.Defaults) {
			r.Resources = &corev1.ResourceRequirements{}
		}, false},
		"grace period": {
			"what a ConfigMap does not say is filled in",
			func(_ *podspec.Builder, _ *podspec.Request, d *podspec.Defaults) { d.TerminationGracePeriod++ }, false,
		},
		"launcher": {
			"a ConfigMap says it itself",
			func(_ *podspec.Builder, _ *podspec.Request, d *podspec.Defaults) { d.Launcher = podspec.ImageVolume }, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := version(tc.change); (got == first) != tc.same {
				t.Errorf("version %q, and it was %q, want the same: %v: %s", got, first, tc.same, tc.reason)
			}
		})
	}
	wrapper := defaults()
	wrapper.WrapperImage = "registry.example/wrapper-server:v2"
	before := request(podspec.Default(defaults()))
	if b, r := builder(), request(podspec.Default(wrapper)); b.SettingsVersion(r) == b.SettingsVersion(before) {
		t.Error("pods with another wrapper server have the same version")
	}
	volume := defaults()
	volume.Launcher = podspec.ImageVolume
	safe := podspec.Default(defaults())
	counted := request(podspec.Default(volume).CountAs(safe))
	if b := builder(); b.SettingsVersion(counted) != b.SettingsVersion(request(safe)) {
		t.Error("a launcher that was chosen later replaces the pods that are there")
	}
}

// TestSettingsVersionOfPods reads the version back from a pod.
func TestSettingsVersionOfPods(t *testing.T) {
	r := request(podspec.Default(defaults()))
	version := builder().SettingsVersion(r)
	if o, ok := podspec.Identify(builder().Pod(r)); !ok || version == "" || o.SettingsVersion != version {
		t.Errorf("the pod has %+v, want the version %q", o, version)
	}
}
