// SPDX-License-Identifier: Apache-2.0

package imagename

import "sync"

// MaxLabels is the maximum number of images that get their own metric label. It is limited because each label adds
// time series.
const MaxLabels = 200

// OtherImages is the metric label that all images without their own label share.
const OtherImages = "other"

// Labels assigns metric labels to images. A label is the image's short name, or the whole name if another image
// already uses the short name as its label. Only the first MaxLabels images get a label, because each label adds time
// series. Only images that exist get a label, because callers could invent any number of names. The zero value is
// ready to use, and safe for concurrent use.
type Labels struct {
	mu     sync.Mutex
	owners map[string]string // maps a label to the image's name without digest
}

// Earn returns the metric label of an image. If the image has no label yet, Earn assigns one, or returns OtherImages
// after MaxLabels assignments. Callers must use it only for images that certainly exist, for example because a pod runs
// them. Otherwise, callers with invented image names could use up the labels.
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

// Label returns an image's label, or OtherImages if Earn has not assigned a label. Use it for images that may not
// exist.
func (l *Labels) Label(image Name) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if label, earned := l.findLabel(image); earned {
		return label
	}
	return OtherImages
}

// findLabel returns the label of an image, and true. If the image has no label yet, it returns the label that Earn
// would assign, and false. Labels contain no digest.
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
