// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// flight is an evaluation that other callers may wait for. There is one for each key at a time, led by a request
// that is in the memory budget, which bounds their number.
type flight struct {
	// done is closed when the leader has ended, with the fields below set.
	done chan struct{}
	// response is nil if the evaluation did not succeed.
	response *evaluation.Response
	// left is whether that was because the leader left.
	left bool
}

// evaluate returns the response for a request, from an entry, from a simultaneous evaluation, or from the
// evaluator.
func (e *evaluator) evaluate(ctx context.Context, req evaluation.Request, digest string) (evaluation.Response, error) {
	key := NewKey(digest, req.ResourceList)
	for start := time.Now(); ; {
		if resp, ok := e.cache.entries.get(key); ok {
			return cached(resp, Hit), nil
		}
		f, leads := e.cache.join(key)
		if leads {
			return e.lead(ctx, req, digest, key, f)
		}
		req.Measured.Enter("queue")
		req.Measured.Waits("the same input is evaluated already")
		if err := f.await(ctx, req, start); err != nil {
			return evaluation.Response{}, err
		}
		switch {
		case f.response != nil:
			return cached(*f.response, Shared), nil
		case !f.left:
			return missed(e.next.Evaluate(ctx, req))
		}
	}
}

// await waits for the end of a flight, until the caller's deadline or that of the gateway.
func (f *flight) await(ctx context.Context, req evaluation.Request, start time.Time) error {
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

// join returns the flight of a key, and whether the caller leads it, since there was none.
func (c *Cache) join(key Key) (f *flight, leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.flights[key]; ok {
		return f, false
	}
	f = &flight{done: make(chan struct{})}
	c.flights[key] = f
	return f, true
}

// lead evaluates, remembers the response and ends the flight, also if the evaluator panics.
func (e *evaluator) lead(
	ctx context.Context, req evaluation.Request, digest string, key Key, f *flight,
) (evaluation.Response, error) {
	defer func() {
		e.cache.mu.Lock()
		delete(e.cache.flights, key)
		e.cache.mu.Unlock()
		close(f.done)
	}()
	resp, err := missed(e.next.Evaluate(ctx, req))
	if err != nil {
		f.left = ctx.Err() != nil
		return resp, err
	}
	switch {
	case resp.Digest == "": // not known to have run the image of this key
	case resp.Digest == digest || req.Image.Digest == digest: // the latter may be an index, which says what runs
		// Callers change fields of their copies; the bytes are shared, and stay as they are.
		shared := resp
		f.response = &shared
		e.cache.entries.put(key, resp)
	default: // the tag has moved meanwhile: others evaluate what the key says
		e.cache.entries.put(NewKey(resp.Digest, req.ResourceList), resp)
	}
	return resp, nil
}

// cached marks a response that no function was evaluated for.
func cached(resp evaluation.Response, outcome string) evaluation.Response {
	resp.Cache, resp.Evaluator = outcome, "cache"
	return resp
}

// missed marks a response that a function was evaluated for.
func missed(resp evaluation.Response, err error) (evaluation.Response, error) {
	resp.Cache = Miss
	return resp, err
}
