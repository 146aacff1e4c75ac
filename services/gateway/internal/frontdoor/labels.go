package frontdoor

import "sync"

// maxImages is how many images have a label of their own: each is a set of time
// series, and callers could name any number.
const maxImages = 200

// other is the label of all further images, and of those that nobody serves.
const other = "other"

// imageLabels gives images their labels, first come first served.
type imageLabels struct {
	mu    sync.Mutex
	known map[string]bool
}

// label returns the image label of a sample.
func (l *imageLabels) label(s sample) string {
	if s.evaluator == "" {
		return other
	}
	name := s.image.Short()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[name] {
		return name
	}
	if len(l.known) >= maxImages {
		return other
	}
	if l.known == nil {
		l.known = map[string]bool{}
	}
	l.known[name] = true
	return name
}
