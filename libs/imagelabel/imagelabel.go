// Package imagelabel gives images their label in metrics: what a person calls them,
// and a bounded number of them, since each is a set of time series and callers can
// name any number of images.
package imagelabel

import "sync"

// Max is how many images have a label of their own.
const Max = 200

// Other is the label of all further images.
const Other = "other"

// Labels gives labels, first come first served. The zero Labels is ready to use, and
// safe for concurrent use.
type Labels struct {
	mu    sync.Mutex
	known map[string]bool
}

// Label returns the label of the image with that short name, such as
// "set-namespace:v0.4.5": the name, or Other.
func (l *Labels) Label(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[name] {
		return name
	}
	if len(l.known) >= Max {
		return Other
	}
	if l.known == nil {
		l.known = make(map[string]bool)
	}
	l.known[name] = true
	return name
}
