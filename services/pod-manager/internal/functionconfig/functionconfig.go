// SPDX-License-Identifier: Apache-2.0

// Package functionconfig reads Porch's FunctionConfig objects: the images that run as local binaries, and the
// settings of images in pods. It is pure: equal objects have the same meaning in each replica.
//
// A problem in a part of an object disables only that part. Problems are texts for users. Package kube writes them
// into the object's status.
package functionconfig

import (
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
)

const (
	// SettingsAnnotation contains the settings that Porch's fields cannot express, as an object in JSON or YAML.
	SettingsAnnotation = "krm-function-runner.github.io/settings"
	// Finalizer belongs to Porch's own function runner. Objects with the finalizer cannot be deleted until it is
	// removed.
	Finalizer = "config.porch.kpt.dev/functionconfig-function-runner"
)

// Config is the decoded form of a FunctionConfig object.
type Config struct {
	Name, UID  string
	Created    time.Time
	Generation int64
	// Image is the last path segment of the images' names, and Prefixes are the registries and paths before it. An
	// empty prefix means the default prefix. Binary and Pod are nil if the image is invalid.
	Image    string
	Prefixes []string
	// Binary and Pod are nil if the part is missing or invalid.
	Binary *Binary
	Pod    *Pod
	// Problems contains a text for each invalid field.
	Problems []string
}

// Binary describes images that run as local binaries.
type Binary struct {
	// Tags are tags of the images and constraints on their versions.
	Tags []string
	// Path is the path of the binary. It is absolute, or relative to the directory of functions.
	Path string
	// Prefork is the number of spare processes, or nil.
	Prefork *int
}

// Pod describes images that run in pods.
type Pod struct {
	// Tags are tags of the images and constraints on their versions. An empty list means all tags and digests.
	Tags []string
	// Settings contains the settings of the images. Settings.Image is empty.
	Settings cacheconfig.Entry
	// MinPods is the minimum number of pods for each listed tag. For a version constraint, it applies to the newest
	// tag that satisfies the constraint.
	MinPods int
}
