// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// TemplatesConfig is where templates come from.
type TemplatesConfig struct {
	Client kubernetes.Interface
	// Name is the ConfigMap with the template; empty for the built-in one.
	Name string
	// Namespace is the namespace of the ConfigMap.
	Namespace string
	// Defaults are for what a template leaves out.
	Defaults podspec.Defaults
	// LauncherPending means that there is no built-in template until [Templates.UseLauncher].
	LauncherPending bool
	Telemetry       *telemetry.Telemetry
}

// Templates follows the template of function pods. Use [NewTemplates].
type Templates struct {
	config    TemplatesConfig
	log       *slog.Logger
	metrics   *metrics
	outage    *outage
	current   atomic.Pointer[podspec.Template]
	available chan struct{} // closes when there is one
	version   string        // the last that was read, good or not

	mu       sync.Mutex
	base     baseParts        // of Porch's objects
	launcher podspec.Launcher // that was chosen automatically; empty if none was
	cause    error            // why the ConfigMap is unusable; nil if it is not known to be
}

// NewTemplates returns templates. It sends no request yet: one that is in a ConfigMap is
// there some time after [Templates.Run] began.
func NewTemplates(config TemplatesConfig) (*Templates, error) {
	metrics, err := newMetrics(config.Telemetry.Meters)
	if err != nil {
		return nil, err
	}
	t := &Templates{config: config, log: config.Telemetry.Log, metrics: metrics, available: make(chan struct{})}
	t.outage = &outage{resource: "pod template", log: t.log, metrics: metrics}
	if config.Name == "" {
		if !config.LauncherPending {
			t.put(podspec.Default(config.Defaults))
		}
	}
	return t, nil
}

// namespaceFile is where a pod finds its own namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace returns the namespace that this program runs in.
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

// Current is the template in force; the zero template if there is none yet.
func (t *Templates) Current() podspec.Template {
	if current := t.current.Load(); current != nil {
		return *current
	}
	return podspec.Template{}
}

// Available closes when there is a template.
func (t *Templates) Available() <-chan struct{} { return t.available }

// templateTimeout is how long a pod waits for the first template: enough for a ConfigMap that
// is applied together with this program. It is short, so that waiting leases soon fail with
// the cause.
const templateTimeout = 2 * time.Second

// Await returns the template in force, the first one as soon as it is there. If there is
// none for a while, or until ctx ends, the error has the cause.
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

// obstacle returns why there is no template. One of class [fault.Precondition] does not go
// away by itself.
func (t *Templates) obstacle() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return t.cause
	}
	err := t.outage.obstacle("the pod template", "what the pod template is", "deploy/components/pod-template")
	if err != nil {
		return err
	}
	return fault.New(fault.Unavailable, "the Kubernetes API has not said yet what the pod template is")
}

// setCause records why the ConfigMap is unusable, for [Templates.Await] while there is no earlier
// template.
func (t *Templates) setCause(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cause = cause
}

// put puts a template in force.
func (t *Templates) put(template podspec.Template) {
	if t.current.Swap(&template) == nil {
		close(t.available)
	}
}

// UseLauncher has the built-in pod template bring the wrapper server in this way from now on,
// and returns it. Its version does not change: pods serve alike however they got the wrapper
// server, and none is outdated.
func (t *Templates) UseLauncher(launcher podspec.Launcher) podspec.Template {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.launcher = launcher
	template, _, err := t.combine(t.base)
	if err != nil {
		return t.Current() // the parts have been in force, so there is no error
	}
	t.put(template)
	return template
}

// Run calls notify with each new template until ctx ends, the first one included; it is in
// force when notify returns. A broken or deleted ConfigMap changes nothing but is logged.
// Porch's published Role allows to list it but not to watch it: changes are then seen within
// about half a minute.
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
	handled, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { t.apply(ctx, object.(*corev1.ConfigMap), notify) },
		UpdateFunc: func(_, object any) { t.apply(ctx, object.(*corev1.ConfigMap), notify) },
		DeleteFunc: func(any) { t.configMapDeleted(ctx) },
	})
	if err != nil {
		return fmt.Errorf("watch the pod template: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if cache.WaitFor(ctx, "", handled.HasSyncedChecker()) && len(informer.GetStore().ListKeys()) == 0 {
			t.configMapDeleted(ctx)
		}
	}()
	runInformer(ctx, informer)
	<-ended
	return nil
}

// configMapDeleted records that there is no ConfigMap.
func (t *Templates) configMapDeleted(ctx context.Context) {
	t.metrics.templateFailed(ctx)
	t.setCause(fault.New(fault.Precondition,
		"there is no pod template: the ConfigMap %s/%s has to be created", t.config.Namespace, t.config.Name))
	if t.current.Load() != nil {
		t.log.WarnContext(ctx, "pod template deleted; its last good version stays in force",
			"config_map", t.config.Name)
		return
	}
	t.log.ErrorContext(ctx, "no function pods are created until there is a pod template", "error", t.obstacle())
}

// apply puts a version of the ConfigMap in force, and passes the template to notify.
func (t *Templates) apply(ctx context.Context, from *corev1.ConfigMap, notify func(podspec.Template)) {
	if from.ResourceVersion == t.version {
		return
	}
	t.version = from.ResourceVersion
	template, warnings, err := podspec.Parse(from.ResourceVersion, from.Data, t.config.Defaults)
	if err != nil {
		t.metrics.templateFailed(ctx)
		err = fault.New(fault.Precondition, "pod template in the ConfigMap %s/%s: %w", from.Namespace, from.Name, err)
		t.setCause(err)
		t.unusable(ctx, err)
		return
	}
	for _, w := range warnings {
		t.log.WarnContext(ctx, "pod template", "config_map", from.Name, "warning", w)
	}
	t.put(template)
	notify(template)
	// Logged last: the template is in force when this line appears.
	t.log.InfoContext(ctx, "pod template in force", "config_map", from.Name, "version", template.Version())
}

// unusable logs the consequence of an unusable ConfigMap.
func (t *Templates) unusable(ctx context.Context, cause error) {
	if t.current.Load() != nil {
		t.log.ErrorContext(ctx, "pod template not changed: the last good one stays in force", "error", cause)
		return
	}
	t.log.ErrorContext(ctx, "no function pods are created until the pod template is repaired", "error", cause)
}
