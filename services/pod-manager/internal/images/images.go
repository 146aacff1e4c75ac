// SPDX-License-Identifier: Apache-2.0

// Package images asks an image-resolver in another process, and uses its last answers while it is away. The
// image-resolver caches: its answer takes a millisecond.
package images

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
)

const (
	// maxAnswers bounds the answers that are kept, of about 3 KiB each.
	maxAnswers = 10_000
	// maxAge is how long an answer is used while the image-resolver is away.
	maxAge = time.Hour
	// patience bounds the wait for the image-resolver if there is an earlier answer. Callers with less time wait for
	// half of it.
	patience = 3 * time.Second
	// retryInterval is the time between two questions while the image-resolver is away.
	retryInterval = 5 * time.Second
)

type (
	// Request is the question to an image-resolver.
	Request = imageresolverv1.ResolveImageRequest
	// Image is its answer.
	Image = imageresolverv1.ResolveImageResponse
)

// Resolver is the part of the image-resolver's client that is needed.
type Resolver interface {
	// ResolveImage has errors with fault classes.
	ResolveImage(ctx context.Context, req *Request) (*Image, error)
}

// Last asks a Resolver, and keeps its last answers. Use [New].
type Last struct {
	resolver Resolver
	stale    func(context.Context)

	mu      sync.Mutex
	answers map[key]answer
	// retryAt is when the image-resolver, which is away, is asked again. It is zero if the image-resolver answers.
	retryAt time.Time
}

type key struct{ image, tagConstraint string }

type answer struct {
	image *Image
	at    time.Time
}

// New returns a Last without answers. stale is called for each earlier answer that is used; it may be nil.
func New(resolver Resolver, stale func(context.Context)) *Last {
	return &Last{resolver: resolver, stale: stale, answers: make(map[key]answer)}
}

// Cached returns what an image is if the image-resolver need not be asked: what a digest stands for does not change.
func (l *Last) Cached(req *Request) (*Image, bool) {
	if !strings.Contains(req.GetImage(), "@") {
		return nil, false
	}
	return l.answer(req)
}

// ResolveImage returns what an image is. Answers are shared: callers must not change them. Errors are those of the
// image-resolver and of ctx.
func (l *Last) ResolveImage(ctx context.Context, req *Request) (*Image, error) {
	if image, ok := l.Cached(req); ok {
		return image, nil
	}
	last, known := l.answer(req)
	if !known {
		return l.ask(ctx, req)
	}
	if !l.claimQuestion() {
		l.countStale(ctx)
		return last, nil
	}
	limited, cancel := context.WithTimeout(ctx, patienceOf(ctx))
	defer cancel()
	image, err := l.ask(limited, req)
	if class := fault.Of(err); err == nil || class != fault.Unavailable && class != fault.DeadlineExceeded {
		return image, err
	}
	if ctx.Err() != nil {
		return nil, err
	}
	l.mu.Lock()
	l.retryAt = time.Now().Add(retryInterval)
	l.mu.Unlock()
	l.countStale(ctx)
	return last, nil
}

// patienceOf returns how long a caller with an earlier answer waits.
func patienceOf(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(patience, time.Until(deadline)/2)
	}
	return patience
}

// answer returns the last answer, unless it is too old.
func (l *Last) answer(req *Request) (*Image, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.answers[keyOf(req)]
	return a.image, ok && time.Since(a.at) < maxAge
}

// claimQuestion reports whether the image-resolver is asked now: while it is away, one caller asks at a time.
func (l *Last) claimQuestion() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retryAt.IsZero() {
		return true
	}
	now := time.Now()
	if now.Before(l.retryAt) {
		return false
	}
	l.retryAt = now.Add(retryInterval)
	return true
}

// ask asks the image-resolver, and keeps its answer.
func (l *Last) ask(ctx context.Context, req *Request) (*Image, error) {
	image, err := l.resolver.ResolveImage(ctx, req)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retryAt = time.Time{}
	if k := keyOf(req); len(l.answers) >= maxAnswers {
		for other := range l.answers {
			if other != k { // any other
				delete(l.answers, other)
				break
			}
		}
	}
	l.answers[keyOf(req)] = answer{image, time.Now()}
	return image, nil
}

func (l *Last) countStale(ctx context.Context) {
	if l.stale != nil {
		l.stale(ctx)
	}
}

func keyOf(req *Request) key { return key{req.GetImage(), req.GetTagConstraint()} }
