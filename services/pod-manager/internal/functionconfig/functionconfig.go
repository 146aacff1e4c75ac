// SPDX-License-Identifier: Apache-2.0

// Package functionconfig reads Porch's FunctionConfig objects: which images run as local
// binaries, and what is different for the pods of which images. It is pure: the same objects
// have the same meaning in each replica.
//
// What is wrong in a part of an object keeps that part from being used, and nothing else: the
// reasons are in words for users, and belong into the object's status.
package functionconfig

import (
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
)

const (
	// SettingsAnnotation has the settings that Porch's fields cannot express, as an object in
	// JSON or YAML.
	SettingsAnnotation = "krm-function-runner.github.io/settings"
	// Finalizer is that of Porch's own function runner. Objects that have it cannot be deleted
	// until it is removed.
	Finalizer = "config.porch.kpt.dev/functionconfig-function-runner"
)

// Config is a FunctionConfig object.
type Config struct {
	Name, UID  string
	Created    time.Time
	Generation int64
	// Image is the last path segment of the images, and Prefixes the repositories above it:
	// an empty one is the default prefix. Without any valid image there are no parts.
	Image    string
	Prefixes []string
	// Binary and Pod are nil if the object has no such part, or it cannot be used.
	Binary *Binary
	Pod    *Pod
	// Problems are what is wrong with the object.
	Problems []string
}

// Binary is how images run as local binaries.
type Binary struct {
	// Tags are tags of the images and constraints on their versions.
	Tags []string
	// Path is the binary: absolute, or relative to the directory of functions.
	Path string
	// Prefork, if not nil, is how many processes are kept started.
	Prefork *int
}

// Pod is how images run in pods.
type Pod struct {
	// Tags are tags of the images and constraints on their versions; none are all tags and digests.
	Tags []string
	// Settings are the settings of the images. They name no image.
	Settings cacheconfig.Entry
	// MinPods is how many pods each listed tag, or the newest one of a constraint, keeps although no lease needs them.
	MinPods int
}
