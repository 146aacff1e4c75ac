package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// TemplatesConfig says where templates come from.
type TemplatesConfig struct {
	Client kubernetes.Interface
	// Name is the ConfigMap with the template; empty for the built-in one.
	Name string
	// Namespace is where it is; empty for the namespace of this program.
	Namespace string
	// Defaults are for what a template does not say.
	Defaults  podspec.Defaults
	Telemetry *telemetry.Telemetry
}

// Templates follows the template of function pods. Use [NewTemplates].
type Templates struct {
	config  TemplatesConfig
	log     *slog.Logger
	metrics *metrics
	current atomic.Pointer[podspec.Template]
	version string // the last that was looked at, good or not
}

// NewTemplates reads the template. One that is named has to be good, and to be there
// within some seconds, as it is if it is applied together with this program: nobody
// wants pods of another kind than was asked for.
func NewTemplates(ctx context.Context, config TemplatesConfig) (*Templates, error) {
	metrics, err := newMetrics(config.Telemetry.Meters)
	if err != nil {
		return nil, err
	}
	t := &Templates{config: config, log: config.Telemetry.Log, metrics: metrics}
	if config.Name == "" {
		builtin := podspec.Default(config.Defaults)
		t.current.Store(&builtin)
		return t, nil
	}
	if config.Namespace == "" {
		if t.config.Namespace, err = ownNamespace(); err != nil {
			return nil, err
		}
	}
	found, err := t.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the pod template from the ConfigMap %s/%s: %w", t.config.Namespace, config.Name, err)
	}
	if err := t.use(found); err != nil {
		return nil, err
	}
	return t, nil
}

// get reads the ConfigMap once.
func (t *Templates) get(ctx context.Context) (found *corev1.ConfigMap, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		found, err = t.config.Client.CoreV1().ConfigMaps(t.config.Namespace).Get(ctx, t.config.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return transient{err}
		}
		return err
	})
	return found, err
}

// namespaceFile is where a pod finds its own namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ownNamespace is the namespace that this program runs in.
func ownNamespace() (string, error) {
	content, err := os.ReadFile(namespaceFile)
	if err != nil {
		return "", fmt.Errorf("find out the namespace of the pod template (outside of a cluster it has to be given): %w", err)
	}
	namespace := strings.TrimSpace(string(content))
	if namespace == "" {
		return "", errors.New("find out the namespace of the pod template: the service account has none")
	}
	return namespace, nil
}

// Current is the template in force.
func (t *Templates) Current() podspec.Template { return *t.current.Load() }

// UseInitContainers has the built-in template bring the wrapper server by an init
// container from now on, and returns it.
func (t *Templates) UseInitContainers() podspec.Template {
	defaults := t.config.Defaults
	defaults.Launcher = podspec.InitContainer
	template := podspec.Default(defaults)
	t.current.Store(&template)
	return template
}

// use puts what a ConfigMap says in force.
func (t *Templates) use(from *corev1.ConfigMap) error {
	t.version = from.ResourceVersion
	template, warnings, err := podspec.Parse(from.ResourceVersion, from.Data, t.config.Defaults)
	if err != nil {
		return fmt.Errorf("pod template in the ConfigMap %s/%s: %w", from.Namespace, from.Name, err)
	}
	for _, w := range warnings {
		t.log.Warn("pod template", "config_map", from.Name, "warning", w)
	}
	t.current.Store(&template)
	return nil
}

// Run calls changed with each new template until ctx ends; it is in force when changed
// returns. One that is broken or gone changes nothing, and the log says so. Porch's
// published Role allows to list the ConfigMap but not to watch it: changes are seen
// within half a minute or so then.
func (t *Templates) Run(ctx context.Context, changed func(podspec.Template)) error {
	if t.config.Name == "" {
		<-ctx.Done()
		return nil
	}
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", t.config.Name).String()
	}
	o := &outage{what: "pod template", log: t.log, metrics: t.metrics}
	view, err := newView(t.config.Client, &corev1.ConfigMap{}, t.config.Client.CoreV1().ConfigMaps(t.config.Namespace), only, o)
	if err != nil {
		return err
	}
	_, err = view.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { t.changed(ctx, object.(*corev1.ConfigMap), changed) },
		UpdateFunc: func(_, object any) { t.changed(ctx, object.(*corev1.ConfigMap), changed) },
		DeleteFunc: func(any) {
			t.metrics.templateFailed(ctx)
			t.log.WarnContext(ctx, "the pod template is gone: its last good version stays in force", "config_map", t.config.Name)
		},
	})
	if err != nil {
		return fmt.Errorf("watch the pod template: %w", err)
	}
	look(ctx, view)
	return nil
}

// changed takes a version of the ConfigMap.
func (t *Templates) changed(ctx context.Context, from *corev1.ConfigMap, changed func(podspec.Template)) {
	if from.ResourceVersion == t.version {
		return
	}
	if err := t.use(from); err != nil {
		t.metrics.templateFailed(ctx)
		t.log.ErrorContext(ctx, "pod template not changed: the last good one stays in force", "error", err)
		return
	}
	template := t.Current()
	changed(template)
	// Whoever reads this may rely on it.
	t.log.InfoContext(ctx, "pod template in force", "config_map", from.Name, "version", template.Version())
}
