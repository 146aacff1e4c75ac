// SPDX-License-Identifier: Apache-2.0

package imagename

import "sync"

// MaxLabels is the maximum number of images with a metric label of their own, because each label adds time series.
const MaxLabels = 200

// OtherImages is the shared metric label of all images without a label of their own.
const OtherImages = "other"

// Labels assigns metric labels to images. A label is the image's short name, or the whole name if another image
// already has the short name as its label. Only images that exist get a label, and only the first MaxLabels. Each
// label adds time series, and callers could send any number of invented names. The zero value is ready to use, and
// safe for concurrent use.
type Labels struct {
	mu     sync.Mutex
	owners map[string]string // label to the image's name without digest
}

// Earn returns the label of an image, and assigns a label first if the image has none. The image must exist,
// because its function has run or because it has a pod. If MaxLabels are already assigned, Earn returns
// OtherImages.
func (l *Labels) Earn(image Name) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	label, earned := l.findLabel(image)
	if !earned && len(l.owners) >= MaxLabels {
		return OtherImages
	}
	if l.owners == nil {
		l.owners = make(map[string]string)
	}
	l.owners[label] = wholeName(image)
	return label
}

// Label returns an image's label, or OtherImages if Earn assigned none. Use it for images that may not exist.
func (l *Labels) Label(image Name) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if label, earned := l.findLabel(image); earned {
		return label
	}
	return OtherImages
}

// findLabel returns the label that an image has or would get. Labels contain no digest. If earned is true, the
// image already has the label.
func (l *Labels) findLabel(image Name) (label string, earned bool) {
	label = image.Short()
	owner, earned := l.owners[label]
	if earned && owner != wholeName(image) {
		label = wholeName(image)
		_, earned = l.owners[label]
	}
	return label, earned
}

// wholeName returns the canonical name of an image without the digest.
func wholeName(image Name) string {
	image.Digest = ""
	return image.String()
}
