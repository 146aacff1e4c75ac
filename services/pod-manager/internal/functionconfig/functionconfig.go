// SPDX-License-Identifier: Apache-2.0

// Package functionconfig decodes Porch's FunctionConfig objects. They define the images that run as local binaries, and
// the settings of images that run in pods. The result depends only on the objects, so that each replica uses the same
// settings. A problem in a part of an object disables only that part. Package kube writes the problems, as texts for
// users, into the status of the object.
package functionconfig

import (
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
)

const (
	// SettingsAnnotation is the annotation with further settings of a FunctionConfig. They cannot be fields, because the
	// API server removes fields that Porch does not define. A single annotation contains all settings, as an object in
	// JSON or YAML. A misspelled setting is therefore an error. A misspelled annotation would be ignored.
	SettingsAnnotation = "krm-function-runner.github.io/settings"
	// Finalizer is the finalizer that Porch's own function runner adds to FunctionConfigs. The pod-manager removes it from
	// objects that are being deleted, because Porch's function runner no longer runs and cannot remove it.
	Finalizer = "config.porch.kpt.dev/functionconfig-function-runner"
)

// Config is a decoded FunctionConfig, Porch's object with the settings of a function's images.
type Config struct {
	Name, UID  string
	Created    time.Time
	Generation int64
	// Image is the last path segment of the images' names, such as set-namespace. Prefixes contains the registries and
	// paths in front of Image. An empty prefix means the default prefix. If Image is invalid, Binary and Pod are nil.
	Image    string
	Prefixes []string
	// Binary and Pod are the decoded fields binaryExecutor and podExecutor. They are nil if missing or invalid.
	Binary *Binary
	Pod    *Pod
	// Problems contains a text for users about each invalid field.
	Problems []string
}

// Binary describes the images whose function runs as a local binary, without a container.
type Binary struct {
	// Tags contains tags of the images, and version constraints such as ~0.4.
	Tags []string
	// Path is the path of the binary. It is absolute, or relative to the gateway's directory of function binaries.
	Path string
	// Prefork is the number of processes of the binary that the gateway starts in advance. It is nil if not set.
	Prefork *int
}

// Pod describes images that run in pods.
type Pod struct {
	// Tags contains tags, and version constraints such as ~0.4. An empty list means all tags and digests.
	Tags []string
	// Settings contains the settings of the pods. Its field Image is empty, because the settings apply to several images.
	Settings cacheconfig.Entry
	// MinPods is the minimum number of pods for each tag in Tags. For a version constraint, these pods run the newest tag
	// that satisfies the constraint.
	MinPods int
}
