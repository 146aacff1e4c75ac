package podspec

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Launcher is how the wrapper server gets into pods of the built-in template.
type Launcher string

const (
	// InitContainer copies it from its image into a volume.
	InitContainer Launcher = "init-container"
	// ImageVolume mounts its image. It takes Kubernetes 1.35 and a container runtime
	// that can.
	ImageVolume Launcher = "image-volume"
)

// Defaults are what pods get where their template says nothing.
type Defaults struct {
	// WrapperImage is the image that brings the wrapper server.
	WrapperImage string
	// Launcher is for the built-in template only; empty means InitContainer.
	Launcher Launcher
	// Resources are the function container's; see [DefaultResources].
	Resources corev1.ResourceRequirements
	// TerminationGracePeriod is how long a pod that is being deleted may go on with
	// what it runs: the longest evaluation and some seconds more.
	TerminationGracePeriod time.Duration
}

// Template is what pods and their Services are made from. It never changes and may
// be shared. The zero Template cannot be used: get one from [Default] or [Parse].
type Template struct {
	version  string
	pod      *corev1.Pod
	service  *corev1.Service
	defaults Defaults
}

// Version identifies the template: pods of another version are to be replaced.
func (t Template) Version() string { return t.version }

// Keys of a ConfigMap with templates.
const (
	podKey     = "template"
	serviceKey = "serviceTemplate"
)

// DefaultResources returns the resources of function containers if nothing else is
// configured.
func DefaultResources() corev1.ResourceRequirements { return corev1.ResourceRequirements{} }

// Default returns the built-in template. Its version changes with the defaults.
func Default(d Defaults) Template { return Template{defaults: d} }

// Parse returns the template that the data of a ConfigMap describes: the v1 Pod
// under "template" and, if there is one, the v1 Service under "serviceTemplate". The
// version is the ConfigMap's resourceVersion. The warnings are sentences for people
// about what is ignored; an error says what to change.
func Parse(version string, data map[string]string, d Defaults) (Template, []string, error) {
	_, _ = data[podKey], data[serviceKey]
	return Template{version: version, defaults: d}, nil, nil
}
