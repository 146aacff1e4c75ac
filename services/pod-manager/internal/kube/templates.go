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

	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// TemplatesConfig is where templates come from.
type TemplatesConfig struct {
	Client kubernetes.Interface
	// Name is the ConfigMap with the template; empty for the built-in one.
	Name string
	// Namespace is where it is; empty for the namespace of this program.
	Namespace string
	// Defaults are for what a template leaves out.
	Defaults podspec.Defaults
	// Undecided means that there is no built-in template until [Templates.UseLauncher].
	Undecided bool
	Telemetry *telemetry.Telemetry
}

// Templates follows the template of function pods. Use [NewTemplates].
type Templates struct {
	config  TemplatesConfig
	log     *slog.Logger
	metrics *metrics
	outage  *outage
	current atomic.Pointer[podspec.Template]
	there   chan struct{} // closes when there is one
	version string        // the last that was looked at, good or not

	mu    sync.Mutex
	cause error // why what there is in the cluster is of no use; nil if nothing is known
}

// NewTemplates returns templates. It sends no request yet: one that is in a ConfigMap is
// there some time after [Templates.Run] began.
func NewTemplates(config TemplatesConfig) (*Templates, error) {
	metrics, err := newMetrics(config.Telemetry.Meters)
	if err != nil {
		return nil, err
	}
	t := &Templates{config: config, log: config.Telemetry.Log, metrics: metrics, there: make(chan struct{})}
	t.outage = &outage{what: "pod template", log: t.log, metrics: metrics}
	if config.Name == "" {
		if !config.Undecided {
			t.put(podspec.Default(config.Defaults))
		}
		return t, nil
	}
	if config.Namespace == "" {
		if t.config.Namespace, err = ownNamespace(); err != nil {
			return nil, err
		}
	}
	return t, nil
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

// Current is the template in force; the zero template if there is none yet.
func (t *Templates) Current() podspec.Template {
	if current := t.current.Load(); current != nil {
		return *current
	}
	return podspec.Template{}
}

// There closes when there is a template.
func (t *Templates) There() <-chan struct{} { return t.there }

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
	case <-t.there:
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

// blame records why the ConfigMap is unusable, for [Templates.Await] while there is no earlier
// template.
func (t *Templates) blame(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cause = cause
}

// put puts a template in force.
func (t *Templates) put(template podspec.Template) {
	if t.current.Swap(&template) == nil {
		close(t.there)
	}
}

// UseLauncher has the built-in template bring the wrapper server in this way from now on,
// and returns it. Its version does not change: pods serve alike however they got the wrapper
// server, and none is outdated.
func (t *Templates) UseLauncher(launcher podspec.Launcher) podspec.Template {
	defaults := t.config.Defaults
	defaults.Launcher = podspec.InitContainer
	safe := podspec.Default(defaults)
	defaults.Launcher = launcher
	template := podspec.Default(defaults).CountAs(safe)
	t.put(template)
	return template
}
