package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

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
	Defaults podspec.Defaults
	Log      *slog.Logger
}

// Templates follows the template of function pods. Use [NewTemplates].
type Templates struct {
	config  TemplatesConfig
	current podspec.Template
	version string // the last that was looked at, good or not
}

// NewTemplates reads the template. One that is named has to be there and to be good:
// nobody wants pods of another kind than was asked for.
func NewTemplates(ctx context.Context, config TemplatesConfig) (*Templates, error) {
	t := &Templates{config: config}
	if config.Name == "" {
		t.current = podspec.Default(config.Defaults)
		return t, nil
	}
	if config.Namespace == "" {
		namespace, err := ownNamespace()
		if err != nil {
			return nil, err
		}
		t.config.Namespace = namespace
	}
	var found *corev1.ConfigMap
	err := retry(ctx, func(ctx context.Context) (err error) {
		found, err = config.Client.CoreV1().ConfigMaps(t.config.Namespace).Get(ctx, config.Name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the pod template from the ConfigMap %s/%s: %w", t.config.Namespace, config.Name, err)
	}
	t.current, err = t.parse(found)
	return t, err
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

// Current is the template as it was read at the start.
func (t *Templates) Current() podspec.Template { return t.current }

// parse reads a ConfigMap.
func (t *Templates) parse(from *corev1.ConfigMap) (podspec.Template, error) {
	t.version = from.ResourceVersion
	template, warnings, err := podspec.Parse(from.ResourceVersion, from.Data, t.config.Defaults)
	if err != nil {
		return podspec.Template{}, fmt.Errorf("pod template in the ConfigMap %s/%s: %w", from.Namespace, from.Name, err)
	}
	for _, w := range warnings {
		t.config.Log.Warn("pod template", "config_map", from.Name, "warning", w)
	}
	return template, nil
}

// Run calls changed with each new template until ctx ends. One that is broken or gone
// changes nothing, and the log says so.
func (t *Templates) Run(ctx context.Context, changed func(podspec.Template)) error {
	if t.config.Name == "" {
		<-ctx.Done()
		return nil
	}
	// Porch's published Role allows to list the ConfigMap and not to watch it. The
	// reflector lists again from time to time then.
	listWatch := cache.NewListWatchFromClient(t.config.Client.CoreV1().RESTClient(), "configmaps", t.config.Namespace, fields.OneTermEqualSelector("metadata.name", t.config.Name))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: listWatch, ObjectType: &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { t.changed(ctx, object.(*corev1.ConfigMap), changed) },
			UpdateFunc: func(_, object any) { t.changed(ctx, object.(*corev1.ConfigMap), changed) },
			DeleteFunc: func(any) {
				t.config.Log.WarnContext(ctx, "the pod template is gone: its last good version stays in force", "config_map", t.config.Name)
			},
		},
	})
	informer.RunWithContext(ctx)
	return nil
}

// changed takes a version of the ConfigMap.
func (t *Templates) changed(ctx context.Context, from *corev1.ConfigMap, changed func(podspec.Template)) {
	if from.ResourceVersion == t.version {
		return
	}
	template, err := t.parse(from)
	if err != nil {
		t.config.Log.ErrorContext(ctx, "pod template not changed: the last good one stays in force", "error", err)
		return
	}
	t.config.Log.InfoContext(ctx, "pod template in force", "config_map", from.Name, "version", template.Version())
	changed(template)
}
