// Package images remembers what images are, so that an evaluation on a warm pod needs
// no word from the image-resolver, nor waits for one that is away.
package images

import (
	"context"
	"sync"
	"time"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
)

const (
	// fresh is how long an answer is used without asking again. The resolver looks
	// at tags every few minutes, so this is little in comparison.
	fresh = 10 * time.Second
	// inUse is how long an answer is used while a new one is asked for in the
	// background: a function in steady use waits for nobody. One that was not used for
	// longer waits for the new answer, since its tag may have moved meanwhile.
	inUse = time.Minute
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
	running  sync.WaitGroup

	mu       sync.Mutex
	known    map[request]answer
	renewals map[request]*renewal
	stopped  bool
}

// request is what was asked for.
type request struct{ image, tagConstraint string }

func (r request) message() *imageresolverv1.ResolveImageRequest {
	return &imageresolverv1.ResolveImageRequest{Image: r.image, TagConstraint: r.tagConstraint}
}

// answer is what the resolver said.
type answer struct {
	image *imageresolverv1.ResolveImageResponse
	at    time.Time
	// missedAt is when the resolver last had nothing to say to the same question.
	missedAt time.Time
}

// due says whether it is time to ask again: once in a while, also if nobody answers.
func (a answer) due(now time.Time) bool {
	return now.Sub(a.at) >= fresh && now.Sub(a.missedAt) >= fresh
}

// away says whether it has been no use of late to wait for a new answer.
func (a answer) away(now time.Time) bool { return now.Sub(a.missedAt) < inUse }

// usable says whether the answer may be used while there is no new one.
func (a answer) usable(now time.Time) bool { return now.Sub(a.at) < usable }

// atOnce says whether the answer is used without waiting for a new one.
func (a answer) atOnce(now time.Time) bool {
	return now.Sub(a.at) < inUse || a.away(now) && a.usable(now)
}

// New returns a memory with nothing in it. What it does in the background ends with
// [Memory.Run].
func New(resolver Resolver) *Memory {
	return &Memory{resolver: resolver, known: make(map[request]answer), renewals: make(map[request]*renewal)}
}

// Recall returns what is known of an image without waiting for anybody, if that is good
// enough. When that is due, it is asked for anew in the background.
func (m *Memory) Recall(image, tagConstraint string) (*imageresolverv1.ResolveImageResponse, bool) {
	asked, now := request{image, tagConstraint}, time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.known[asked]
	if !ok || !known.atOnce(now) {
		return nil, false
	}
	if known.due(now) {
		m.renew(context.Background(), asked)
	}
	return known.image, true
}

// ResolveImage says what an image is, and waits for the image-resolver to say so unless
// that was a moment ago, or it is away. The answer is shared: it must not be changed.
// Errors are those of the image-resolver and of ctx.
func (m *Memory) ResolveImage(ctx context.Context, image, tagConstraint string) (*imageresolverv1.ResolveImageResponse, error) {
	asked := request{image, tagConstraint}
	known, renewal, ok := m.lookUp(ctx, asked)
	if !ok {
		return m.ask(ctx, asked)
	}
	if renewal == nil {
		return known.image, nil
	}
	renewed, err := renewal.wait(ctx)
	if err != nil && ctx.Err() == nil && noWord(err) {
		m.missed(asked) // nobody else waits for this renewal
		return known.image, nil
	}
	return renewed, err
}

// lookUp returns a usable answer, and the renewal that it makes sense to wait for.
func (m *Memory) lookUp(ctx context.Context, asked request) (known answer, wait *renewal, ok bool) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok = m.known[asked]
	if !ok || !known.usable(now) {
		return answer{}, nil, false
	}
	if known.due(now) {
		wait = m.renew(ctx, asked)
	}
	if known.away(now) {
		wait = nil
	}
	return known, wait, true
}

// ask asks the resolver, and remembers what it says.
func (m *Memory) ask(ctx context.Context, asked request) (*imageresolverv1.ResolveImageResponse, error) {
	image, err := m.resolver.ResolveImage(ctx, asked.message())
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remember(asked, image)
	return image, nil
}

// remember keeps an answer. m is locked.
func (m *Memory) remember(asked request, image *imageresolverv1.ResolveImageResponse) {
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
