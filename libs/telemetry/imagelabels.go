// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"strings"
	"sync"
)

// MaxImageLabels is the maximum number of images with a label of their own.
const MaxImageLabels = 200

// OtherImages is the label of all images without a label of their own.
const OtherImages = "other"

// ImageName is implemented by imagename.Name, the canonical name of an image. It is an interface, so that programs
// without images do not link package imagename.
type ImageName interface {
	Short() string
	String() string
}

// ImageLabels assigns labels for metrics to images. The label is the image's short name, or the whole name if the
// short name is already the label of another image. Each label causes a set of time series, and callers can send any
// number of names. Therefore only the first MaxImageLabels existing images get a label. The zero value is ready to
// use, and safe for concurrent use.
type ImageLabels struct {
	mu     sync.Mutex
	owners map[string]string // label to the image's name without digest
}

// Earn returns the label of an image that is known to exist, because its function has run or because it has a pod. It
// assigns a label to the image unless MaxImageLabels are assigned already. Then it returns OtherImages.
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

// Label returns the label of an image that may not exist. It returns OtherImages unless Earn assigned a label to the
// image.
func (l *ImageLabels) Label(image ImageName) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if label, earned := l.findLabel(image); earned {
		return label
	}
	return OtherImages
}

// findLabel returns the label for an image, and reports whether it is already assigned to the image. Labels contain
// no digests.
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
