// SPDX-License-Identifier: Apache-2.0

package telemetry

import "sync"

// MaxImageLabels is how many images have a label of their own.
const MaxImageLabels = 200

// OtherImages is the label of all other images.
const OtherImages = "other"

// ImageLabels gives images their label in metrics: their short name, and a bounded number of
// them, first come first served. Each label is a set of time series, and callers can name any
// number of images, so only images that exist get one. The zero value is ready to use, and safe
// for concurrent use.
type ImageLabels struct {
	mu     sync.Mutex
	earned map[string]bool
}

// Earn returns the label of the image with that short name, such as
// "set-namespace:v0.4.5", which is known to exist: a function of it has run, or a pod of it
// is there. The label is the name while there are fewer than MaxImageLabels, else OtherImages.
func (l *ImageLabels) Earn(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.earned[name] {
		return name
	}
	if len(l.earned) >= MaxImageLabels {
		return OtherImages
	}
	if l.earned == nil {
		l.earned = make(map[string]bool)
	}
	l.earned[name] = true
	return name
}

// Label returns the label of an image that may not exist: its name if it has earned it,
// else OtherImages.
func (l *ImageLabels) Label(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.earned[name] {
		return name
	}
	return OtherImages
}
