// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// flight is an evaluation for which other callers may wait. There is at most one for each key. Its leader's request
// uses the memory budget, which limits the number of flights.
type flight struct {
	// done is closed when the leader has set the fields below.
	done chan struct{}
	// response is nil if the evaluation failed.
	response *evaluation.Response
	// left is true if the evaluation failed because the leader left.
	left bool
}

// evaluateOnce returns the response from an entry, from a simultaneous evaluation, or from the evaluator.
func (e *evaluator) evaluateOnce(
	ctx context.Context, req evaluation.Request, digest string,
) (evaluation.Response, error) {
	key := NewKey(digest, req.ResourceList)
	for start := time.Now(); ; {
		if resp, ok := e.cache.entries.get(key); ok {
			return markCached(resp, Hit), nil
		}
		f, leads := e.cache.joinFlight(key)
		if leads {
			return e.leadFlight(ctx, req, digest, key, f)
		}
		req.Measured.Enter("queue")
		req.Measured.Waits("the same input is evaluated already")
		if err := f.awaitEnd(ctx, req, start); err != nil {
			return evaluation.Response{}, err
		}
		switch {
		case f.response != nil:
			return markCached(*f.response, Shared), nil
		case !f.left:
			return markMissed(e.next.Evaluate(ctx, req))
		}
	}
}

// awaitEnd returns at the end of a flight, or at the deadline of the caller or of the gateway.
func (f *flight) awaitEnd(ctx context.Context, req evaluation.Request, start time.Time) error {
	ctx, cancel := req.Limit.Context(ctx)
	defer cancel()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return function.Interrupted(function.ContextErr(ctx), req.Given, time.Since(start),
			"waiting for a simultaneous evaluation of the same input")
	}
}

// joinFlight returns the flight of a key, and reports whether the caller leads a new flight.
func (c *Cache) joinFlight(key Key) (f *flight, leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.flights[key]; ok {
		return f, false
	}
	f = &flight{done: make(chan struct{})}
	c.flights[key] = f
	return f, true
}

// leadFlight evaluates, stores the response and ends the flight, also if the evaluator panics.
func (e *evaluator) leadFlight(
	ctx context.Context, req evaluation.Request, digest string, key Key, f *flight,
) (evaluation.Response, error) {
	defer func() {
		e.cache.mu.Lock()
		delete(e.cache.flights, key)
		e.cache.mu.Unlock()
		close(f.done)
	}()
	resp, err := markMissed(e.next.Evaluate(ctx, req))
	if err != nil {
		f.left = ctx.Err() != nil
		return resp, err
	}
	switch {
	case resp.Digest == "": // may not be the image of this key
	case resp.Digest == digest || req.Image.Digest == digest: // an index has another digest than its images
		// Callers may change fields of their copies. They share the bytes, and do not change them.
		shared := resp
		f.response = &shared
		e.cache.entries.put(key, resp)
	default: // the tag has moved: waiting callers evaluate the digest of the key
		e.cache.entries.put(NewKey(resp.Digest, req.ResourceList), resp)
	}
	return resp, nil
}

// markCached marks a response for which no function ran.
func markCached(resp evaluation.Response, outcome string) evaluation.Response {
	resp.Cache, resp.Evaluator = outcome, "cache"
	return resp
}

// markMissed marks a response for which a function ran.
func markMissed(resp evaluation.Response, err error) (evaluation.Response, error) {
	resp.Cache = Miss
	return resp, err
}
