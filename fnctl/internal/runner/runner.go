// SPDX-License-Identifier: Apache-2.0

// Package runner starts a function runner in fnctl's own process, for the flag --local. It runs images of functions
// in sandboxes on this machine, without a server, a daemon or a port. It requires Linux.
package runner

import (
	"context"
	"net"
	"time"
)

// Config configures a Runner.
type Config struct {
	// Offline makes the runner use only images that were pulled before, and call no registry.
	Offline bool
	// MaxMessageBytes is the maximum size of a request and of a response. It is required.
	MaxMessageBytes int
	// Environment contains variables for functions as KEY=value, in addition to the variables of their images.
	Environment []string
	// Arguments replace the Cmd of images. Functions may then write any text, such as their help.
	Arguments []string
}

// Runner is a function runner in this process.
type Runner interface {
	// Dial connects to the gateway of the runner, without a network port.
	Dial(ctx context.Context) (net.Conn, error)
	// Sandboxes describes the method that starts sandboxes, as text for users.
	Sandboxes() string
	// Fingerprint identifies all that affects a function's output, except the input. The cache uses it in its keys. It is
	// empty if the output depends on the network, because such output must not be cached.
	Fingerprint(ctx context.Context, image, tag string) (string, error)
	// Close stops the runner.
	Close() error
}

// Launcher is the result of testing a launcher. A launcher is a program that starts sandboxes, such as bubblewrap.
type Launcher struct {
	Name string `json:"name"`
	// Problem is the reason for a failed test. It is empty if the launcher works.
	Problem string `json:"problem,omitempty"`
}

// Images is the store of pulled images on this machine, for the flag --local.
type Images interface {
	// Pull pulls an image and returns its full name. If tag is a version constraint, Pull selects a tag that satisfies
	// it. It calls phase with a text for users at the start of each phase of the pull.
	Pull(ctx context.Context, image, tag string, phase func(string)) (name string, err error)
	// List returns all images, starting with the least recently used image.
	List() ([]Image, error)
	// Prune removes unused images, the least recently used first, until all images need at most maxBytes on disk. It
	// returns the remaining images.
	Prune(ctx context.Context, maxBytes int64) ([]Image, error)
	// Close stops all pulls.
	Close() error
}

// Image is an image in the store.
type Image struct {
	// Names are the full names of the image with its tags. If no tag is known, the repository is the only name.
	Names []string `json:"names"`
	// Digest is the digest of the manifest.
	Digest string `json:"digest"`
	// Bytes is the size of the image on disk.
	Bytes int64 `json:"bytes"`
	Files int64 `json:"files"`
	// Used is the time of the last use.
	Used time.Time `json:"used"`
}
