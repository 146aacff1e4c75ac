// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// decoded returns an object of Porch's from YAML.
func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := new(unstructured.Unstructured)
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace(namespace)
	return u
}

// podTemplate returns base-pod-template with a label and the name of its container.
func podTemplate(t *testing.T, label, container string) *unstructured.Unstructured {
	t.Helper()
	return decoded(t, `
apiVersion: v1
kind: PodTemplate
metadata: {name: base-pod-template, resourceVersion: `+label+`, uid: u}
template:
  metadata: {labels: {version: `+label+`}}
  spec: {containers: [{name: `+container+`, command: [/server]}]}
`)
}

func serviceTemplate(t *testing.T, label string) *unstructured.Unstructured {
	t.Helper()
	return decoded(t, `
apiVersion: config.porch.kpt.dev/v1alpha1
kind: ServiceTemplate
metadata: {name: base-service-template, resourceVersion: `+label+`}
template:
  metadata: {labels: {version: `+label+`}}
  spec: {ports: [{port: 9446}, {name: metrics, port: 9464}]}
`)
}

// labels returns the labels of the pods and the Services that the template in force gives.
func (p *porch) labels() string {
	r := podspec.Request{Template: p.Current()}
	r.Function = podspec.Function{Reference: reference, Digest: digest}
	return p.label(podspec.Builder{}.Pod(r).Labels) + " " + p.label(podspec.Builder{}.Service(r).Labels)
}

func (*porch) label(labels map[string]string) string {
	if version, ok := labels["version"]; ok {
		return version
	}
	return "builtin"
}

// apply creates or replaces an object.
func (p *porch) apply(t *testing.T, resource schema.GroupVersionResource, u *unstructured.Unstructured) {
	t.Helper()
	objects := p.client.Resource(resource).Namespace(namespace)
	_, err := objects.Update(t.Context(), u, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = objects.Create(t.Context(), u, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	awaitIdle()
}

func TestBaseTemplatesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(podTemplate(t, "p1", "function"))
		p.run(t)
		want := func(labels, when string) {
			t.Helper()
			if got := p.labels(); got != labels {
				t.Errorf("%s: labels are %q, want %q", when, got, labels)
			}
		}
		want("p1 builtin", "with a PodTemplate only")
		if !p.decidedNow() {
			t.Error("pods wait although all templates are known")
		}
		p.apply(t, serviceTemplates, serviceTemplate(t, "s1"))
		want("p1 s1", "with both")
		p.apply(t, podTemplates, podTemplate(t, "p2", "function"))
		want("p2 s1", "after a change")
		p.apply(t, podTemplates, podTemplate(t, "p3", "fn"))
		want("p2 s1", "with one that is broken")
		p.apply(t, podTemplates, podTemplate(t, "p4", "function"))
		want("p4 s1", "when repaired")
		objects := p.client.Resource(podTemplates).Namespace(namespace)
		if err := objects.Delete(t.Context(), "base-pod-template", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitIdle()
		want("builtin s1", "when the PodTemplate was deleted")
		if n := len(p.used); n != 5 {
			t.Errorf("templates in force were %q, want five", p.used)
		}
	})
}

// TestTheLauncherAndBaseTemplates chooses a launcher automatically, which is for the built-in pod
// template only.
func TestTheLauncherAndBaseTemplates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(serviceTemplate(t, "s1"))
		p.template.LauncherPending = true
		p.run(t)
		if p.Current().Version() != "" {
			t.Error("there is a template before the launcher was chosen")
		}
		volume := p.UseLauncher(podspec.ImageVolume)
		if got := p.labels(); got != "builtin s1" {
			t.Errorf("labels are %q", got)
		}
		if other := p.UseLauncher(podspec.InitContainer); other.Version() != volume.Version() {
			t.Errorf("versions are %s and %s: pods serve alike", volume.Version(), other.Version())
		}
		p.apply(t, podTemplates, podTemplate(t, "p1", "function"))
		if p.UseLauncher(podspec.ImageVolume); p.labels() != "p1 s1" {
			t.Errorf("labels are %q", p.labels())
		}
	})
}

func TestTheFlagsTemplateWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(podTemplate(t, "p1", "function"))
		p.template.Name = "mine"
		p.template.Namespace = "system"
		p.run(t)
		const wins = "--function-pod-template (FNR_TEMPLATE) wins over it"
		if p.Current().Version() != "" || !strings.Contains(p.logs.String(), wins) {
			t.Errorf("the version is %q; the log:\n%s", p.Current().Version(), &p.logs)
		}
	})
}

func TestBrokenTemplateAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(podTemplate(t, "p1", "fn"))
		p.run(t)
		if log := p.logs.String(); p.labels() != "builtin builtin" || !strings.Contains(log, "pod template not changed") {
			t.Errorf("labels are %q; the log:\n%s", p.labels(), log)
		}
	})
}
