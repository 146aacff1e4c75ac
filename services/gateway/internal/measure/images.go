package measure

import "sync"

// maxImages is how many images have a label of their own: each is a set of time
// series, and callers could name any number.
const maxImages = 200

// OtherImages is the label of all further images.
const OtherImages = "other"

// ImageLabels gives images their labels, first come first served. The zero
// ImageLabels is ready to use.
type ImageLabels struct {
	mu    sync.Mutex
	known map[string]bool
}

// Label returns the label of the image with that short name.
func (l *ImageLabels) Label(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[name] {
		return name
	}
	if len(l.known) >= maxImages {
		return OtherImages
	}
	if l.known == nil {
		l.known = map[string]bool{}
	}
	l.known[name] = true
	return name
}
