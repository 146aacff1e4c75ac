// Package images remembers for some seconds what images are, so that an evaluation on
// a warm pod needs no word from the image-resolver.
package images

import (
	"context"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
)

const (
	// fresh is how long an answer is used without asking again. The resolver looks
	// at tags every few minutes, so this is little in comparison.
	fresh = 10 * time.Second
	// usable is how long an answer is used if the resolver cannot be reached: pods
	// that run do not depend on it.
	usable = time.Hour
	// maxKnown bounds how many answers are kept.
	maxKnown = 10_000
)

// Resolver is the part of the image-resolver's client that is needed.
type Resolver interface {
	ResolveImage(ctx context.Context, req *imageresolverv1.ResolveImageRequest) (*imageresolverv1.ResolveImageResponse, error)
}

// Memory asks a Resolver, and remembers its answers. Use [New].
type Memory struct {
	resolver Resolver
	mu       sync.Mutex
	known    map[request]answer
}

// request is what was asked for.
type request struct{ image, tagConstraint string }

// answer is what the resolver said.
type answer struct {
	image *imageresolverv1.ResolveImageResponse
	at    time.Time
}

// New returns a memory with nothing in it.
func New(resolver Resolver) *Memory {
	return &Memory{resolver: resolver, known: make(map[request]answer)}
}

// Recall returns what is known of an image without asking anybody, if that is fresh.
func (m *Memory) Recall(image, tagConstraint string) (*imageresolverv1.ResolveImageResponse, bool) {
	known, ok := m.recall(request{image, tagConstraint})
	return known.image, ok && time.Since(known.at) < fresh
}

// ResolveImage says what an image is. The answer is shared: it must not be changed.
// It has the errors of the image-resolver.
func (m *Memory) ResolveImage(ctx context.Context, image, tagConstraint string) (*imageresolverv1.ResolveImageResponse, error) {
	asked := request{image, tagConstraint}
	known, ok := m.recall(asked)
	age := time.Since(known.at)
	if ok && age < fresh {
		return known.image, nil
	}
	resolved, err := m.resolver.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: image, TagConstraint: tagConstraint})
	if err == nil {
		m.remember(asked, resolved)
		return resolved, nil
	}
	if ok && age < usable && fault.Of(err) == fault.Unavailable {
		return known.image, nil
	}
	return nil, err
}

func (m *Memory) recall(asked request) (answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.known[asked]
	return known, ok
}

func (m *Memory) remember(asked request, image *imageresolverv1.ResolveImageResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if len(m.known) >= maxKnown {
		m.makeRoom(now)
	}
	m.known[asked] = answer{image: image, at: now}
}

// makeRoom forgets what is not fresh, or everything if that is not enough: asking
// again costs little.
func (m *Memory) makeRoom(now time.Time) {
	for asked, a := range m.known {
		if now.Sub(a.at) >= fresh {
			delete(m.known, asked)
		}
	}
	if len(m.known) >= maxKnown {
		clear(m.known)
	}
}
