// SPDX-License-Identifier: Apache-2.0

// Package runner runs the function runner in fnctl's own process, where the system can: functions of images
// run in sandboxes of this machine, without a server, a daemon or a port.
package runner

import (
	"context"
	"net"
	"time"
)

// Config is how a runner works.
type Config struct {
	// Offline uses images that were pulled before, and calls no registry.
	Offline bool
	// MaxMessageBytes bounds requests and responses.
	MaxMessageBytes int
	// Environment is what functions get beside the environment of their images, as KEY=value.
	Environment []string
}

// Runner is a function runner in this process.
type Runner interface {
	// Dial connects to its gateway.
	Dial(ctx context.Context) (net.Conn, error)
	// Sandboxes returns what starts sandboxes.
	Sandboxes() string
	// Fingerprint returns all that decides, beside its input, what a function returns; empty if that is not known.
	Fingerprint(ctx context.Context, image, tag string) (string, error)
	// Close ends it.
	Close() error
}

// Launcher is the trial of a launcher of sandboxes.
type Launcher struct {
	Name string `json:"name"`
	// Problem is empty if it works.
	Problem string `json:"problem,omitempty"`
}

// Images are the images that this machine has.
type Images interface {
	// Pull pulls an image, with the tag that a constraint selects, and returns its name. The phase is called
	// with what the pull is doing.
	Pull(ctx context.Context, image, tag string, phase func(string)) (name string, err error)
	// List returns all images, the least recently used first.
	List() ([]Image, error)
	// Prune removes images that no process uses, the least recently used first, until all of them take at
	// most so many bytes. It returns what is left.
	Prune(ctx context.Context, maxBytes int64) ([]Image, error)
	// Close ends all pulls.
	Close() error
}

// Image is an image that this machine has.
type Image struct {
	// Names are all that it is called.
	Names []string `json:"names"`
	// Digest is that of its manifest.
	Digest string `json:"digest"`
	// Bytes is what it takes on disk, and Files how many files it has.
	Bytes int64 `json:"bytes"`
	Files int64 `json:"files"`
	// Used is when it was used last.
	Used time.Time `json:"used"`
}
