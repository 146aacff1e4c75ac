// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"strings"
	"sync"
)

// MaxImageLabels is the maximum number of images with their own label.
const MaxImageLabels = 200

// OtherImages is the label of all other images.
const OtherImages = "other"

// ImageName is the canonical name of an image, an imagename.Name: programs that name no images do not link that
// package.
type ImageName interface {
	Short() string
	String() string
}

// ImageLabels gives images their label in metrics: their short name, or their whole name if the short name is already
// the label of another image. Each label is a set of time series, and callers can name any number of images, so the
// number of labels is bounded, first come first served, and only existing images get a label. The zero value is ready
// to use, and safe for concurrent use.
type ImageLabels struct {
	mu     sync.Mutex
	owners map[string]string // the image's name without digest, by label
}

// Earn returns the label of an existing image: its function has run, or it has a pod. The image gets its own label
// while there are fewer than MaxImageLabels, else OtherImages.
func (l *ImageLabels) Earn(image ImageName) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	label, earned := l.findLabel(image)
	if !earned && len(l.owners) >= MaxImageLabels {
		return OtherImages
	}
	if l.owners == nil {
		l.owners = make(map[string]string)
	}
	l.owners[label] = wholeName(image)
	return label
}

// Label returns the label of an image that may not exist: its own label if it has earned it, else OtherImages.
func (l *ImageLabels) Label(image ImageName) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if label, earned := l.findLabel(image); earned {
		return label
	}
	return OtherImages
}

// findLabel returns the label that is for an image, and reports whether the image has earned it. Digests are in no
// label.
func (l *ImageLabels) findLabel(image ImageName) (label string, earned bool) {
	label = image.Short()
	owner, earned := l.owners[label]
	if earned && owner != wholeName(image) {
		label = wholeName(image)
		_, earned = l.owners[label]
	}
	return label, earned
}

// wholeName returns an image's name without its digest.
func wholeName(image ImageName) string {
	name, _, _ := strings.Cut(image.String(), "@")
	return name
}
