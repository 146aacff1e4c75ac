// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"strings"
	"sync"
)

// MaxImageLabels is how many images have a label of their own.
const MaxImageLabels = 200

// OtherImages is the label of all other images.
const OtherImages = "other"

// ImageName is the canonical name of an image, an imagename.Name: programs that name no images do not link that package.
type ImageName interface {
	Short() string
	String() string
}

// ImageLabels gives images their label in metrics: their short name, or their whole name if another image's label is
// that short name. Each label is a set of time series, and callers can name any number of images, so the number of
// labels is bounded, first come first served, and only images that exist get one. The zero value is ready to use,
// and safe for concurrent use.
type ImageLabels struct {
	mu     sync.Mutex
	owners map[string]string // the image's name without digest, by label
}

// Earn returns the label of an image that is known to exist: a function of it has run, or a pod of it is there. The
// label is the image's own while there are fewer than MaxImageLabels, else OtherImages.
func (l *ImageLabels) Earn(image ImageName) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	label, earned := l.find(image)
	if !earned && len(l.owners) >= MaxImageLabels {
		return OtherImages
	}
	if l.owners == nil {
		l.owners = make(map[string]string)
	}
	l.owners[label] = whole(image)
	return label
}

// Label returns the label of an image that may not exist: its own if it has earned one, else OtherImages.
func (l *ImageLabels) Label(image ImageName) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if label, earned := l.find(image); earned {
		return label
	}
	return OtherImages
}

// find returns the label that is for an image, and reports whether the image has earned it. Digests are in no label.
func (l *ImageLabels) find(image ImageName) (label string, earned bool) {
	label = image.Short()
	owner, earned := l.owners[label]
	if earned && owner != whole(image) {
		label = whole(image)
		_, earned = l.owners[label]
	}
	return label, earned
}

// whole returns an image's name without its digest.
func whole(image ImageName) string {
	name, _, _ := strings.Cut(image.String(), "@")
	return name
}
