// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

var (
	functionConfigs = schema.GroupVersionResource{
		Group: "config.porch.kpt.dev", Version: "v1alpha1", Resource: "functionconfigs",
	}
	serviceTemplates = schema.GroupVersionResource{
		Group: "config.porch.kpt.dev", Version: "v1alpha1", Resource: "servicetemplates",
	}
	podTemplates = schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}
)

// porch is a Kubernetes with Porch's custom resources in memory, and what follows them.
type porch struct {
	client *dynamicfake.FakeDynamicClient
	core   *fake.Clientset
	logs   bytes.Buffer
	*kube.FunctionConfigs
	*kube.PorchResources
	// template is for pods; the test changes it before it runs.
	template kube.TemplatesConfig
	*kube.Templates

	mu        sync.Mutex
	installed bool
	asked     int      // for the discovery document
	used      []string // versions of templates
	sets      []*functionconfig.Set
}

// functionConfig returns an object with a podExecutor of these fields, in YAML.
func functionConfig(name, fields string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"image":       name,
		"podExecutor": map[string]any{"timeToLive": fields},
	}}}
	u.SetAPIVersion("config.porch.kpt.dev/v1alpha1")
	u.SetKind("FunctionConfig")
	u.SetName(name)
	u.SetNamespace(namespace)
	u.SetUID(types.UID("uid-" + name))
	u.SetGeneration(1)
	return u
}

// newPorch returns a Kubernetes with objects.
func newPorch(objects ...runtime.Object) *porch {
	kinds := map[schema.GroupVersionResource]string{
		functionConfigs: "FunctionConfigList", serviceTemplates: "ServiceTemplateList", podTemplates: "PodTemplateList",
	}
	return &porch{
		client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...),
		core:   fake.NewClientset(), template: kube.TemplatesConfig{Defaults: defaults}, installed: true,
	}
}

// run follows the objects until the test, or ctx, ends.
func (p *porch) run(t *testing.T) (stop func()) {
	t.Helper()
	tel := telemetry.Discard()
	tel.Log = slog.New(slog.NewTextHandler(&p.logs, nil))
	p.FunctionConfigs = kube.NewFunctionConfigs(kube.FunctionConfigsConfig{
		DefaultImagePrefix: "example.com", Secrets: []string{"our-keys"}, Log: tel.Log, Changed: p.changed,
	})
	p.template.Telemetry = tel
	p.Templates = kube.NewTemplates(p.template)
	var err error
	p.PorchResources, err = kube.NewPorchResources(kube.PorchResourcesConfig{
		Client: p.core, Dynamic: p.client, Discover: p.discover, Namespace: namespace, Telemetry: tel,
	}, p.FunctionConfigs, p.Templates, p.use)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.PorchResources.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	synctest.Wait()
	return stop
}

func (p *porch) discover(context.Context, string) (*metav1.APIResourceList, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	list := &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "repositories"}}}
	if p.installed {
		list.APIResources = append(list.APIResources,
			metav1.APIResource{Name: "functionconfigs"}, metav1.APIResource{Name: "servicetemplates"})
	}
	return list, nil
}

func (p *porch) use(template podspec.Template) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = append(p.used, template.Version())
}

func (p *porch) install(installed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.installed = installed
}

func (p *porch) changed(s *functionconfig.Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets = append(p.sets, s)
}

// ttl returns the time to live that is in force for a function; zero if there is none.
func (p *porch) ttl(name string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sets) == 0 {
		return 0
	}
	f, ok := p.sets[len(p.sets)-1].Pod(imagename.Name{Repository: "example.com/" + name, Tag: "v1"})
	if !ok {
		return 0
	}
	return f.Settings.TTL
}

// decidedNow reports whether pods wait no longer for the objects at the start.
func (p *porch) decidedNow() bool {
	select {
	case <-p.Synced():
		return true
	default:
		return false
	}
}

// status returns an object's status: the generation and the error.
func (p *porch) status(t *testing.T, name string) (generation int64, text string) {
	t.Helper()
	u := p.get(t, name)
	generation, _, _ = unstructured.NestedInt64(u.Object, "status", "functionRunnerObservedGeneration")
	text, _, _ = unstructured.NestedString(u.Object, "status", "error")
	return generation, text
}

func (p *porch) get(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := p.functionConfigs().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// functionConfigs returns the client of Porch's FunctionConfigs.
func (p *porch) functionConfigs() dynamic.ResourceInterface {
	return p.client.Resource(functionConfigs).Namespace(namespace)
}

// change changes an object as its user does: its generation grows.
func (p *porch) change(t *testing.T, name string, change func(*unstructured.Unstructured)) {
	t.Helper()
	u := p.get(t, name)
	u.SetGeneration(u.GetGeneration() + 1)
	change(u)
	if _, err := p.functionConfigs().Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// patches returns how many patches were requested.
func (p *porch) patches() int {
	n := 0
	for _, a := range p.client.Actions() {
		if a.GetVerb() == "patch" {
			n++
		}
	}
	return n
}

// awaitIdle waits until nothing more is about to happen.
func awaitIdle() {
	time.Sleep(time.Second) //nolint:forbidigo // the time of the test's bubble
	synctest.Wait()
}

func setTTL(ttl string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, ttl, "spec", "podExecutor", "timeToLive")
	}
}

func TestFunctionConfigsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(functionConfig("a", "1m"))
		p.run(t)
		awaitIdle()
		if generation, text := p.status(t, "a"); p.ttl("a") != time.Minute || generation != 1 || text != "" {
			t.Errorf("a has %v, and the status %d %q", p.ttl("a"), generation, text)
		}
		p.change(t, "a", setTTL("2m"))
		awaitIdle()
		if generation, _ := p.status(t, "a"); p.ttl("a") != 2*time.Minute || generation != 2 {
			t.Errorf("after a change a has %v, and the generation %d in its status", p.ttl("a"), generation)
		}
		p.change(t, "a", setTTL("1s"))
		awaitIdle()
		const wrong = `function-runner: spec.podExecutor.timeToLive is "1s"`
		if generation, text := p.status(t, "a"); p.ttl("a") != 0 || generation != 2 || !strings.HasPrefix(text, wrong) {
			t.Errorf("with a wrong value a has %v, and the status %d %q", p.ttl("a"), generation, text)
		}
		p.change(t, "a", setTTL("3m"))
		awaitIdle()
		if generation, text := p.status(t, "a"); p.ttl("a") != 3*time.Minute || generation != 4 || text != "" {
			t.Errorf("when repaired a has %v, and the status %d %q", p.ttl("a"), generation, text)
		}
		if err := p.functionConfigs().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitIdle()
		if p.ttl("a") != 0 {
			t.Errorf("when deleted a has %v", p.ttl("a"))
		}
		if n := p.patches(); n != 4 {
			t.Errorf("%d patches were requested, want one for each change", n)
		}
	})
}

func TestWithoutTheResourcesNothingIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch()
		p.install(false)
		p.run(t)
		time.Sleep(time.Hour) //nolint:forbidigo // the time of the test's bubble
		synctest.Wait()
		if n := len(p.client.Actions()); n > 0 || p.asked > 66 || p.logs.Len() > 0 || len(p.sets) != 1 {
			t.Errorf("within an hour: %d requests, %d for the discovery document, %d sets; the log:\n%s",
				n, p.asked, len(p.sets), &p.logs)
		}
		p.install(true)
		created := functionConfig("a", "1m")
		if _, err := p.functionConfigs().Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(75 * time.Second) //nolint:forbidigo // likewise
		synctest.Wait()
		if p.ttl("a") != time.Minute {
			t.Error("resources that are installed later are not picked up")
		}
	})
}

func TestResourcesThatGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(functionConfig("a", "1m"))
		changes := watch.NewFake()
		p.client.PrependWatchReactor("functionconfigs", func(clienttesting.Action) (bool, watch.Interface, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if !p.installed {
				return true, nil, apierrors.NewNotFound(functionConfigs.GroupResource(), "")
			}
			return true, changes, nil
		})
		p.run(t)
		if p.ttl("a") != time.Minute {
			t.Fatal("not in force")
		}
		p.install(false)
		changes.Stop()
		time.Sleep(time.Minute) //nolint:forbidigo // the time of the test's bubble
		synctest.Wait()
		if p.ttl("a") != 0 {
			t.Error("objects of a kind that is gone are in force")
		}
		requests := len(p.client.Actions())
		time.Sleep(time.Hour) //nolint:forbidigo // likewise
		synctest.Wait()
		if n := len(p.client.Actions()) - requests; n > 0 || strings.Count(p.logs.String(), "no longer installed") != 1 {
			t.Errorf("%d requests when they were gone; the log:\n%s", n, &p.logs)
		}
	})
}

// forbidden refuses a verb on FunctionConfigs.
func (p *porch) forbidden(verb string) {
	p.client.PrependReactor(verb, "functionconfigs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(functionConfigs.GroupResource(), "", errors.New("no role"))
	})
}

func TestAReplicaThatMayNotWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(functionConfig("a", "1m"))
		p.forbidden("list")
		p.run(t)
		if decided := p.decidedNow(); !decided {
			t.Error("pods wait for objects that may not be watched")
		}
		others := len(p.client.Actions())
		time.Sleep(time.Hour) //nolint:forbidigo // the time of the test's bubble
		synctest.Wait()
		n, log := len(p.client.Actions())-others, p.logs.String()
		if n > 12 || strings.Count(log, "not permitted to watch") != 1 || strings.Contains(log, "interrupted") {
			t.Errorf("%d requests within an hour; the log:\n%s", n, &p.logs)
		}
	})
}

func TestAReplicaThatMayNotWriteStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []runtime.Object
		for i := range 100 {
			objects = append(objects, functionConfig(fmt.Sprintf("fn%d", i), "1m"))
		}
		p := newPorch(objects...)
		p.forbidden("patch")
		p.run(t)
		time.Sleep(4 * time.Minute) //nolint:forbidigo // the time of the test's bubble
		synctest.Wait()
		n, log := p.patches(), p.logs.String()
		if n == 0 || n > 8 || p.ttl("fn99") != time.Minute ||
			strings.Count(log, "status of FunctionConfigs not writable") != 1 {
			t.Errorf("%d patches; fn99 has %v; the log:\n%s", n, p.ttl("fn99"), &p.logs)
		}
	})
}

func TestStatusesOfOthersAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := functionConfig("a", "1m")
		a.Object["status"] = map[string]any{
			"functionRunnerObservedGeneration": int64(1), "error": "of Porch", "goObservedGeneration": int64(1),
		}
		b := functionConfig("b", "1m")
		b.Object["status"] = map[string]any{"error": "of the runner before", "goObservedGeneration": int64(1)}
		p := newPorch(a, b)
		p.run(t)
		awaitIdle()
		if generation, text := p.status(t, "a"); generation != 1 || text != "of Porch" || p.patches() != 1 {
			t.Errorf("a has %d %q after %d patches", generation, text, p.patches())
		}
		if generation, text := p.status(t, "b"); generation != 1 || text != "" {
			t.Errorf("b has %d %q", generation, text)
		}
		if n, _, _ := unstructured.NestedInt64(p.get(t, "b").Object, "status", "goObservedGeneration"); n != 1 {
			t.Error("a field of another component is lost")
		}
	})
}

// TestReplicasDoNotFight has two replicas of versions with different words: each writes once.
func TestReplicasDoNotFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPorch(functionConfig("a", "1s"))
		p.run(t)
		awaitIdle()
		for range 3 {
			u := p.get(t, "a")
			_ = unstructured.SetNestedField(u.Object, "function-runner: other words", "status", "error")
			if _, err := p.functionConfigs().Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitIdle()
		}
		if p.patches() != 1 {
			t.Errorf("%d patches, want one", p.patches())
		}
	})
}

// TestKeysOfOurProgramsReachNoFunction has objects that pass Secrets to function pods, of which one has our keys.
func TestKeysOfOurProgramsReachNoFunction(t *testing.T) {
	for secret, refused := range map[string]bool{"our-keys": true, "theirs": false} {
		synctest.Test(t, func(t *testing.T) {
			a := functionConfig("a", "1m")
			sources := []any{map[string]any{"secretRef": map[string]any{"name": secret}}}
			_ = unstructured.SetNestedSlice(a.Object, sources,
				"spec", "podExecutor", "templateOverrides", "container", "envFrom")
			p := newPorch(a)
			p.run(t)
			awaitIdle()
			_, text := p.status(t, "a")
			if got := strings.Contains(text, `names the Secret "our-keys"`); got != refused {
				t.Errorf("with the Secret %s, the status is %q", secret, text)
			}
		})
	}
}

func TestBinariesThatAreNotThereGetIntoTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := functionConfig("a", "1m")
		_ = unstructured.SetNestedMap(a.Object, map[string]any{"tags": []any{"v1"}, "path": "a"}, "spec", "binaryExecutor")
		p := newPorch(a)
		p.run(t)
		p.ReportBinaries(map[string]string{"a": "it is not there"})
		awaitIdle()
		if generation, text := p.status(t, "a"); generation != 0 || text != "function-runner: it is not there" {
			t.Errorf("the status is %d %q", generation, text)
		}
		p.ReportBinaries(map[string]string{})
		awaitIdle()
		if generation, text := p.status(t, "a"); generation != 1 || text != "" {
			t.Errorf("the status is %d %q", generation, text)
		}
	})
}

func TestUpstreamsFinalizerIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := functionConfig("a", "1m")
		a.SetFinalizers([]string{"example.com/other", functionconfig.Finalizer})
		p := newPorch(a)
		p.run(t)
		p.change(t, "a", func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: time.Now()}) })
		awaitIdle()
		if got := p.get(t, "a").GetFinalizers(); len(got) != 1 || got[0] != "example.com/other" {
			t.Errorf("finalizers are %v", got)
		}
		if p.ttl("a") != 0 {
			t.Error("an object that is being deleted is in force")
		}
	})
}
