// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	goodPod = `apiVersion: v1
kind: Pod
spec:
  containers:
    - name: function
      image: to-be-replaced
      command: [/wrapper-server-tools/wrapper-server]
`
	goodService = `apiVersion: v1
kind: Service
spec:
  ports: [{port: 9446}]
`
)

// configMap is a version of the ConfigMap with templates.
func configMap(version, pod string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "templates", Namespace: "system", ResourceVersion: version},
		Data:       map[string]string{"template": pod, "serviceTemplate": goodService},
	}
}

// following records the templates that were put in force.
type following struct {
	client *fake.Clientset
	log    journal

	mu       sync.Mutex
	versions []string
}

func (f *following) config() kube.TemplatesConfig {
	return kube.TemplatesConfig{
		Client: f.client, Name: "templates", Namespace: "system",
		Defaults: podspec.Defaults{WrapperImage: "example.com/wrapper-server:v1"}, Telemetry: f.log.telemetry(),
	}
}

// follow follows the template until the test ends.
func (f *following) follow(t *testing.T) *kube.Templates {
	t.Helper()
	templates := kube.NewTemplates(f.config())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := templates.Run(ctx, func(template podspec.Template) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.versions = append(f.versions, template.Version())
			if f.log.count("pod template applied") >= len(f.versions) {
				t.Error("the log calls a template in force that is not yet")
			}
		})
		if err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return templates
}

// heard returns the versions that were put in force, once nothing moves any more.
func (f *following) heard() string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.versions, " ")
}

// put changes the ConfigMap, past the versions that the client gives.
func (f *following) put(t *testing.T, to *corev1.ConfigMap) {
	t.Helper()
	synctest.Wait()
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if err := f.client.Tracker().Update(configMaps, to, "system"); err != nil {
		t.Fatal(err)
	}
}

// TestTemplateChanges breaks a template and repairs it.
func TestTemplateChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &following{client: client(configMap("1", goodPod))}
		templates := f.follow(t)
		if f.heard() != "1" || templates.Current().Version() != "1" {
			t.Fatalf("got %q at the start, want 1", f.heard())
		}
		f.put(t, configMap("2", strings.ReplaceAll(goodPod, "name: function", "name: other")))
		if f.heard() != "1" || templates.Current().Version() != "1" || f.log.count("keeping the current template") != 1 {
			t.Errorf("got %q of a broken template; the log says:\n%s", f.heard(), &f.log.text)
		}
		f.put(t, configMap("3", goodPod))
		if f.heard() != "1 3" || templates.Current().Version() != "3" {
			t.Errorf("got %q of the repaired template, want 3", f.heard())
		}
		configMaps := f.client.CoreV1().ConfigMaps("system")
		if err := configMaps.Delete(t.Context(), "templates", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if f.heard() != "1 3" || templates.Current().Version() != "3" || f.log.count("pod template deleted") != 1 {
			t.Errorf("got %q once the template is gone; the log says:\n%s", f.heard(), &f.log.text)
		}
	})
}

// TestTemplateIsListed has the right to list only, as in Porch's published Role.
func TestTemplateIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &following{client: client(configMap("1", goodPod))}
		f.client.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "templates",
				errors.New("cannot watch"))
		})
		f.follow(t)
		f.put(t, configMap("2", goodPod))
		<-time.After(5 * time.Minute)
		if f.heard() != "1 2" {
			t.Errorf("got %q, want 1 and 2", f.heard())
		}
		if f.log.count("watch not permitted; polling") != 1 || f.log.count("level=WARN") != 1 {
			t.Errorf("want one warning:\n%s", &f.log.text)
		}
	})
}

// TestFirstTemplate has a pod wait for the first template: it gets it, or its
// creation fails with the cause.
func TestFirstTemplate(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "templates", errors.New("no"))
	tests := []struct {
		name   string
		object runtime.Object
		answer func() error // to the lists
		class  fault.Class
		fails  string
		reason string
	}{
		{name: "good", object: configMap("1", goodPod), reason: "it is there"},
		{name: "away for a moment", object: configMap("1", goodPod), answer: once(errGone), reason: "it passes"},
		{
			name: "broken", object: configMap("1", "{"),
			class: fault.Precondition, fails: "system/templates: template",
			reason: "a user has to repair it",
		},
		{
			name: "missing", object: &corev1.ConfigMap{},
			class: fault.Precondition, fails: "ConfigMap system/templates must be created",
			reason: "a user has to create it",
		},
		{
			name: "forbidden", object: configMap("1", goodPod), answer: always(forbidden),
			class: fault.Precondition, fails: "is forbidden",
			reason: "a user has to grant rights",
		},
		{
			name:   "away",
			object: configMap("1", goodPod), answer: always(errGone), class: fault.Unavailable, fails: "connection refused",
			reason: "it may come back",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &following{client: client(tc.object)}
				if tc.answer != nil {
					f.client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
						err := tc.answer()
						return err != nil, nil, err
					})
				}
				template, err := f.follow(t).Await(t.Context())
				if tc.fails == "" {
					if err != nil || template.Version() != "1" || f.heard() != "1" {
						t.Errorf("version %q, %v, in force %q; want 1: %s", template.Version(), err, f.heard(), tc.reason)
					}
					return
				}
				if err == nil || fault.Of(err) != tc.class || !strings.Contains(err.Error(), tc.fails) || template.Version() != "" {
					t.Errorf("version %q, %v; want %v with %q: %s", template.Version(), err, tc.class, tc.fails, tc.reason)
				}
				if f.log.count("level=WARN")+f.log.count("level=ERROR") != 1 {
					t.Errorf("want one line about it:\n%s", &f.log.text)
				}
			})
		})
	}
}

// TestTemplateComesLate starts without a template, and creates it later.
func TestTemplateComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &following{client: client()}
		templates := f.follow(t)
		w := start(t, func(c *kube.Config) { c.Templates = templates })
		w.Create(pool.Create{Function: fn, Slot: 1, Name: podName}, workload)
		<-time.After(3 * time.Second)
		events := w.events()
		if len(events) != 1 || events[0].(pool.CreateFailed).Problem.Kind != pool.Fatal {
			t.Fatalf("got %v, want that there is no template", events)
		}
		w.Create(pool.Create{Function: fn, Slot: 1, Name: podName}, workload)
		configMaps := f.client.CoreV1().ConfigMaps("system")
		if _, err := configMaps.Create(t.Context(), configMap("1", goodPod), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		version := w.pod(t).Annotations[podspec.AnnotationTemplateVersion]
		if version != templates.Current().Version() || f.heard() == "" {
			t.Errorf("the pod has version %q, and in force is %q", version, f.heard())
		}
		templated := podspec.Request{Workload: workload, Template: templates.Current()}
		want := podspec.Builder{Namespace: namespace, MaxMessageBytes: 1 << 20}.SettingsVersion(templated)
		if got := w.pod(t).Annotations[podspec.AnnotationSettingsVersion]; got != want {
			t.Errorf("the pod has settings %q, want %q: its first use would replace it", got, want)
		}
	})
}

// TestLauncherIsChosenLate has pods wait until it is known how the wrapper server gets
// into them, and changes that for later ones.
func TestLauncherIsChosenLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		templates := kube.NewTemplates(kube.TemplatesConfig{
			Defaults: defaults, LauncherPending: true, Telemetry: telemetry.Discard(),
		})
		if _, err := templates.Await(t.Context()); fault.Of(err) != fault.Unavailable {
			t.Errorf("awaited a template before the launcher was chosen: %v", err)
		}
		safe := templates.UseLauncher(podspec.InitContainer)
		awaited, err := templates.Await(t.Context())
		if err != nil || awaited.Version() != safe.Version() || safe.Version() != template().Version() {
			t.Errorf("awaited %q, %v, want %q", awaited.Version(), err, template().Version())
		}
		if other := templates.UseLauncher(podspec.ImageVolume); other.Version() != safe.Version() {
			t.Errorf("version %q after %q: warm pods would go", other.Version(), safe.Version())
		}
	})
}

// always answers with an error.
func always(err error) func() error { return func() error { return err } }

// once answers with an error the first time.
func once(err error) func() error {
	return func() error {
		defer func() { err = nil }()
		return err
	}
}
