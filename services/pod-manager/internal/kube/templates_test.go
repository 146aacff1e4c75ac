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

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
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

// following is somebody who follows templates.
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

// follow reads the template and follows it until the test ends.
func (f *following) follow(t *testing.T) *kube.Templates {
	t.Helper()
	templates, err := kube.NewTemplates(t.Context(), f.config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := templates.Run(ctx, func(template podspec.Template) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.versions = append(f.versions, template.Version())
			if f.log.count("pod template in force") >= len(f.versions) {
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

// heard is what was told, once nothing moves any more.
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
	if err := f.client.Tracker().Update(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, to, "system"); err != nil {
		t.Fatal(err)
	}
}

// TestTemplateChanges breaks a template and repairs it.
func TestTemplateChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &following{client: client(configMap("1", goodPod))}
		templates := f.follow(t)
		if v := templates.Current().Version(); v != "1" || f.heard() != "" {
			t.Fatalf("version %q at the start, and told %q; want 1 and nothing", v, f.heard())
		}
		f.put(t, configMap("2", strings.ReplaceAll(goodPod, "name: function", "name: other")))
		if f.heard() != "" || templates.Current().Version() != "1" || f.log.count("the last good one stays in force") != 1 {
			t.Errorf("told %q of a broken template; the log says:\n%s", f.heard(), &f.log.text)
		}
		f.put(t, configMap("3", goodPod))
		if f.heard() != "3" || templates.Current().Version() != "3" {
			t.Errorf("told %q of the repaired template, want 3", f.heard())
		}
		if err := f.client.CoreV1().ConfigMaps("system").Delete(t.Context(), "templates", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if f.heard() != "3" || templates.Current().Version() != "3" || f.log.count("the pod template is gone") != 1 {
			t.Errorf("told %q once the template is gone; the log says:\n%s", f.heard(), &f.log.text)
		}
	})
}

// TestTemplateIsListed has the right to list only, as in Porch's published Role.
func TestTemplateIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &following{client: client(configMap("1", goodPod))}
		f.client.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "templates", errors.New("cannot watch"))
		})
		f.follow(t)
		f.put(t, configMap("2", goodPod))
		<-time.After(5 * time.Minute)
		if f.heard() != "2" {
			t.Errorf("told %q, want 2", f.heard())
		}
		if f.log.count("changes are seen late") != 1 || f.log.count("level=WARN") != 1 {
			t.Errorf("want one warning:\n%s", &f.log.text)
		}
	})
}

func TestNewTemplates(t *testing.T) {
	tests := []struct {
		name   string
		object runtime.Object
		answer func() error // to the reading
		fails  string
		reason string
	}{
		{name: "good", object: configMap("1", goodPod), reason: "it is there"},
		{name: "broken", object: configMap("1", "{"), fails: "system/templates", reason: "nobody wants pods of another kind"},
		{name: "missing", object: &corev1.ConfigMap{}, fails: `"templates" not found`, reason: "nobody wants pods of another kind"},
		{
			name: "forbidden", object: configMap("1", goodPod), fails: "is forbidden", reason: "it stays so",
			answer: func() error {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "templates", errors.New("no"))
			},
		},
		{name: "away for a moment", object: configMap("1", goodPod), answer: once(errGone), reason: "it passes"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &following{client: client(tc.object)}
				if tc.answer != nil {
					f.client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
						err := tc.answer()
						return err != nil, nil, err
					})
				}
				_, err := kube.NewTemplates(t.Context(), f.config())
				if (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("got %v, want %q: %s", err, tc.fails, tc.reason)
				}
			})
		})
	}
}

// once answers with an error the first time.
func once(err error) func() error {
	return func() error {
		defer func() { err = nil }()
		return err
	}
}
