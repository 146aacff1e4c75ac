// SPDX-License-Identifier: Apache-2.0

// Package runner starts a function runner in fnctl's own process, on systems with sandboxes. Functions of images run
// in sandboxes on this machine, without a server, a daemon or a port.
package runner

import (
	"context"
	"net"
	"time"
)

// Config configures a Runner.
type Config struct {
	// Offline makes the runner use pulled images only, and call no registry.
	Offline bool
	// MaxMessageBytes is the maximum size of a request and of a response. It is required.
	MaxMessageBytes int
	// Environment contains variables of functions in addition to the environment of their images, as KEY=value.
	Environment []string
}

// Runner is a function runner in this process.
type Runner interface {
	// Dial connects to the gateway of the runner.
	Dial(ctx context.Context) (net.Conn, error)
	// Sandboxes returns the description of the launcher of sandboxes.
	Sandboxes() string
	// Fingerprint identifies everything except the input on which the output of a function depends. It is empty for
	// functions whose output depends on the network.
	Fingerprint(ctx context.Context, image, tag string) (string, error)
	// Close stops the runner.
	Close() error
}

// Launcher is a launcher of sandboxes and the result of its trial.
type Launcher struct {
	Name string `json:"name"`
	// Problem is the reason for a failed trial. It is empty if the launcher works.
	Problem string `json:"problem,omitempty"`
}

// Images is the image store of this machine.
type Images interface {
	// Pull pulls an image, with the tag that a constraint selects, and returns the image's name. Pull calls phase
	// with the phase of the pull whenever it changes.
	Pull(ctx context.Context, image, tag string, phase func(string)) (name string, err error)
	// List returns all images, starting with the least recently used image.
	List() ([]Image, error)
	// Prune removes unused images, starting with the least recently used image, until the store needs at most maxBytes.
	// It returns the remaining images.
	Prune(ctx context.Context, maxBytes int64) ([]Image, error)
	// Close stops all pulls.
	Close() error
}

// Image is an image in the store.
type Image struct {
	// Names are the names of the image with their tags. If no tag is known, Names contains the image's repository.
	Names []string `json:"names"`
	// Digest is the digest of the manifest.
	Digest string `json:"digest"`
	// Bytes is the size on disk, and Files the number of files.
	Bytes int64 `json:"bytes"`
	Files int64 `json:"files"`
	// Used is the time of the last use.
	Used time.Time `json:"used"`
}
