// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// TemplatesConfig configures the source of pod templates.
type TemplatesConfig struct {
	Client kubernetes.Interface
	// Name is the name of the ConfigMap with the pod template. If it is empty, Porch's template objects apply. If these
	// objects are missing too, the built-in template applies.
	Name string
	// Namespace is the namespace of the ConfigMap.
	Namespace string
	// Defaults contains values for fields that a template leaves unset.
	Defaults podspec.Defaults
	// LauncherPending is true if the launcher, an image volume or an init container, is chosen later. The built-in
	// template is then unavailable until [Templates.UseLauncher] is called.
	LauncherPending bool
	Telemetry       *telemetry.Telemetry
}

// Templates provides the current template of function pods. It watches the ConfigMap or Porch's template objects for
// changes.
type Templates struct {
	config    TemplatesConfig
	log       *slog.Logger
	metrics   *metrics
	outage    *outage
	current   atomic.Pointer[podspec.Template]
	available chan struct{} // closed once there is a template

	mu       sync.Mutex
	base     baseParts        // contents of Porch's template objects
	launcher podspec.Launcher // launcher that was chosen automatically, or empty
	cause    error            // error of an unusable ConfigMap, or nil
}

// NewTemplates returns Templates, and sends no requests. A template in a ConfigMap therefore becomes available only
// after [Templates.Run] starts.
func NewTemplates(config TemplatesConfig) *Templates {
	metrics := newMetrics(config.Telemetry.Meters)
	t := &Templates{config: config, log: config.Telemetry.Log, metrics: metrics, available: make(chan struct{})}
	t.outage = &outage{resource: "pod template", log: t.log, metrics: metrics}
	if config.Name == "" && !config.LauncherPending {
		t.setCurrent(podspec.Default(config.Defaults))
	}
	return t
}

// namespaceFile is the file in which Kubernetes provides the namespace of this program's own pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace returns the namespace of this program's own pod.
func OwnNamespace() (string, error) {
	content, err := os.ReadFile(namespaceFile)
	if err != nil {
		return "", fmt.Errorf("find the namespace of this program: %w", err)
	}
	namespace := strings.TrimSpace(string(content))
	if namespace == "" {
		return "", errors.New("find the namespace of this program: the service account has none")
	}
	return namespace, nil
}

// Current returns the current template. It returns the zero template until [Templates.Available] closes.
func (t *Templates) Current() podspec.Template {
	if current := t.current.Load(); current != nil {
		return *current
	}
	return podspec.Template{}
}

// Available returns a channel that closes once there is a template.
func (t *Templates) Available() <-chan struct{} { return t.available }

// templateTimeout is the maximum time that a new pod waits for the first template. It suffices for a ConfigMap that is
// applied together with this program. It is short, so that callers of the pod soon get the cause as an error.
const templateTimeout = 2 * time.Second

// Await returns the current template, and waits up to 2 s (templateTimeout) for the first template. After the
// timeout, it returns an error with the reason that there is no template.
func (t *Templates) Await(ctx context.Context) (podspec.Template, error) {
	timer := time.NewTimer(templateTimeout)
	defer timer.Stop()
	select {
	case <-t.available:
		return t.Current(), nil
	case <-timer.C:
		return podspec.Template{}, t.obstacle()
	case <-ctx.Done():
		return podspec.Template{}, ctx.Err()
	}
}

// obstacle returns the reason that there is no template. It is a [fault.Precondition] error if a user must act.
func (t *Templates) obstacle() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return t.cause
	}
	err := t.outage.obstacle("the pod template", "deploy/components/pod-template")
	if err != nil {
		return err
	}
	return fault.New(fault.Unavailable, "the pod template has not been read from the Kubernetes API yet")
}

// setCause stores the reason that the ConfigMap is unusable, for callers that wait for a template.
func (t *Templates) setCause(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cause = cause
}

func (t *Templates) setCurrent(template podspec.Template) {
	if t.current.Swap(&template) == nil {
		close(t.available)
	}
}

// UseLauncher selects an image volume or an init container for the built-in template, and returns the new template. The
// template's version stays the same, so that existing pods do not become outdated.
func (t *Templates) UseLauncher(launcher podspec.Launcher) podspec.Template {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.launcher = launcher
	template, _, err := t.combineParts(t.base)
	if err != nil {
		return t.Current() // cannot happen: the parts were valid before
	}
	t.setCurrent(template)
	return template
}

// Run watches the ConfigMap with the pod template until ctx is cancelled. It passes each new template to the callback,
// and then logs that the template is applied. If the ConfigMap becomes invalid or is deleted, the current template
// stays in use. Porch's published Role permits lists of ConfigMaps, but no watches. With this Role, Run polls, and
// changes arrive within about half a minute.
func (t *Templates) Run(ctx context.Context, notify func(podspec.Template)) error {
	if t.config.Name == "" {
		<-ctx.Done()
		return nil
	}
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", t.config.Name).String()
	}
	from := t.config.Client.CoreV1().ConfigMaps(t.config.Namespace)
	informer, err := newInformer(t.config.Client, &corev1.ConfigMap{}, from, only, t.outage)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { runInformer(ctx, informer) })
	defer running.Wait()
	apply := func(object *corev1.ConfigMap) { t.applyConfigMap(ctx, object, notify) }
	return followObject(ctx, informer, apply, func() { t.configMapDeleted(ctx) })
}

// configMapDeleted records and logs that the ConfigMap is missing. The last valid template stays in use.
func (t *Templates) configMapDeleted(ctx context.Context) {
	t.metrics.templateFailed(ctx)
	t.setCause(fault.New(fault.Precondition,
		"there is no pod template: the ConfigMap %s/%s must be created", t.config.Namespace, t.config.Name))
	if t.current.Load() != nil {
		t.log.WarnContext(ctx, "pod template deleted, keeping its last valid version",
			"config_map", t.config.Name)
		return
	}
	t.log.ErrorContext(ctx, "no function pods are created until there is a pod template", "error", t.obstacle())
}

// applyConfigMap makes the ConfigMap's template the current template, and passes it to the callback. If the ConfigMap
// is invalid, the current template stays in use.
func (t *Templates) applyConfigMap(ctx context.Context, from *corev1.ConfigMap, notify func(podspec.Template)) {
	template, warnings, err := podspec.Parse(from.ResourceVersion, from.Data, t.config.Defaults)
	if err != nil {
		t.metrics.templateFailed(ctx)
		err = fault.New(fault.Precondition, "pod template in the ConfigMap %s/%s: %w", from.Namespace, from.Name, err)
		t.setCause(err)
		t.logUnusable(ctx, err)
		return
	}
	for _, w := range warnings {
		t.log.WarnContext(ctx, "pod template", "config_map", from.Name, "warning", w)
	}
	t.setCurrent(template)
	notify(template)
	// This message comes last, because users read it as a sign that the template is in use.
	t.log.InfoContext(ctx, "pod template applied", "config_map", from.Name, "version", template.Version())
}

// logUnusable logs that the ConfigMap is unusable, and how this affects new pods.
func (t *Templates) logUnusable(ctx context.Context, cause error) {
	if t.current.Load() != nil {
		t.log.ErrorContext(ctx, "pod template not changed, keeping the current template", "error", cause)
		return
	}
	t.log.ErrorContext(ctx, "no function pods are created until the pod template is repaired", "error", cause)
}

// Names of the PodTemplate and ServiceTemplate objects in which Porch stores its templates for function pods.
const (
	basePodTemplate     = "base-pod-template"
	baseServiceTemplate = "base-service-template"
)

// base watches one of Porch's two template objects, the PodTemplate or the ServiceTemplate. It applies each change
// to the template of function pods.
type base struct {
	templates *Templates
	changed   func(podspec.Template)
	resource  schema.GroupVersionResource
	name      string
}

// baseParts contains the contents of Porch's two template objects, by object name. It contains nil for a missing
// object. The contents are never modified.
type baseParts map[string]map[string]any

// baseTemplates returns the watchers of Porch's two template objects. A watcher passes each new template to the
// callback, and then logs that the template is applied.
func (t *Templates) baseTemplates(changed func(podspec.Template)) []base {
	return []base{{t, changed, podTemplates, basePodTemplate}, {t, changed, serviceTemplates, baseServiceTemplate}}
}

// absent implements follower. Porch's template object is missing, so the built-in object replaces it in the template.
func (b base) absent(ctx context.Context) { b.applyObject(ctx, nil) }

// follow implements follower.
func (b base) follow(ctx context.Context, c *PorchResources) error {
	return c.watch(ctx, b.resource, b.name, func(ctx context.Context, informer cache.SharedIndexInformer) error {
		apply := func(u *unstructured.Unstructured) { b.applyObject(ctx, u) }
		if err := followObject(ctx, informer, apply, func() { b.absent(ctx) }); err != nil {
			return err
		}
		c.markSynced(b.resource)
		<-ctx.Done()
		return nil
	})
}

// applyObject updates the template of function pods after a change of Porch's template object. u is nil if the
// object does not exist. If the new template is invalid, the current template stays in use.
func (b base) applyObject(ctx context.Context, u *unstructured.Unstructured) {
	t := b.templates
	if t.config.Name != "" {
		if u != nil {
			t.log.InfoContext(ctx, "template not used: --function-pod-template (FNR_TEMPLATE) wins over it",
				"template", b.name, "config_map", t.config.Name)
		}
		return
	}
	var content map[string]any
	if u != nil {
		content = u.Object
	}
	template, warnings, changed, err := t.useBase(b.name, content)
	if err != nil {
		t.metrics.templateFailed(ctx)
		t.log.ErrorContext(ctx, "pod template not changed, keeping the current template",
			"template", b.name, "error", err)
		return
	}
	for _, w := range warnings {
		t.log.WarnContext(ctx, "pod template", "template", b.name, "warning", w)
	}
	if !changed {
		return
	}
	b.changed(template)
	t.log.InfoContext(ctx, "pod template applied",
		"template", b.name, "deleted", u == nil, "version", template.Version())
}

// useBase replaces the content of a single template object of Porch, and makes the combined template current. If the
// combined template is invalid, it returns an error and keeps the current template.
func (t *Templates) useBase(name string, content map[string]any) (
	template podspec.Template, warnings []string, changed bool, err error,
) {
	t.mu.Lock()
	defer t.mu.Unlock()
	parts := baseParts{}
	maps.Copy(parts, t.base)
	parts[name] = content
	template, warnings, err = t.combineParts(parts)
	if err != nil {
		return template, nil, false, err
	}
	t.base = parts
	if before := t.current.Load(); before == nil {
		// Until a launcher is chosen, only a user's pod template is usable, because it needs no launcher.
		changed = parts[basePodTemplate] != nil
	} else {
		changed = before.Version() != template.Version()
	}
	if changed {
		t.setCurrent(template)
	}
	return template, warnings, changed, nil
}

// combineParts builds the pod template from Porch's template objects. The launcher (an image volume or an init
// container) adds the wrapper server to pods. If the pod-manager chose the launcher automatically, the template's
// version does not depend on this choice. A new choice therefore makes no pods outdated.
func (t *Templates) combineParts(parts baseParts) (podspec.Template, []string, error) {
	defaults := t.config.Defaults
	if t.launcher != "" {
		defaults.Launcher = t.launcher
	}
	pod, service := parts[basePodTemplate], parts[baseServiceTemplate]
	template, warnings, err := podspec.ParseBase(pod, service, defaults)
	if err != nil || defaults.Launcher != podspec.ImageVolume || t.launcher == "" {
		return template, warnings, err
	}
	defaults.Launcher = podspec.InitContainer
	safe, _, err := podspec.ParseBase(pod, service, defaults)
	return template.CountAs(safe), warnings, err
}
