// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// flight is a running evaluation whose response all callers with the same key share. Its leader is the caller that
// started it. Flights need no separate limit, because the request of each leader uses a part of the memory budget.
type flight struct {
	// done is closed after the evaluation has ended and its outcome is set.
	done chan struct{}
	// response is the evaluation's response. It is nil if the evaluation failed or its response must not be shared.
	response *evaluation.Response
	// left is true if the evaluation failed because its leader no longer waited. Either the leader, the caller that
	// started the evaluation, has left, or its deadline has passed.
	left bool
}

// evaluateOnce returns a cached response if possible. Otherwise it waits for a running evaluation of the same image
// and input, or calls the next evaluator.
func (e *evaluator) evaluateOnce(
	ctx context.Context, req evaluation.Request, digest string,
) (evaluation.Response, error) {
	key := NewKey(digest, req.ResourceList)
	for start := time.Now(); ; {
		if resp, ok := e.cache.get(key); ok {
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

// awaitEnd waits for the end of an evaluation that another caller started. It returns an error if the deadline of the
// waiting caller or the gateway's time limit passes first.
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

// joinFlight returns the running evaluation for a key, so that the caller can wait for it. If no such evaluation runs,
// it returns a new flight, and leads is true. The caller must then evaluate the function and end the flight.
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

// leadFlight calls the next evaluator, caches the response, and wakes the callers that wait for the flight. It wakes
// them even if the evaluator panics.
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
	case resp.Digest == "": // not cached: the executed image may differ from the key's image
	case resp.Digest == digest || req.Image.Digest == digest: // an image index in req has another digest
		// Give the waiting callers their own copy of the response. Each caller then sets fields such as Cache in its copy.
		// All copies share the bytes of the resource list and the log, because no caller changes these bytes.
		shared := resp
		f.response = &shared
		e.cache.put(key, resp)
	default: // the tag now refers to another image: waiting callers must not get this response
		e.cache.put(NewKey(resp.Digest, req.ResourceList), resp)
	}
	return resp, nil
}

// markCached marks a response as cached, so that callers see that no function ran. outcome is [Hit] or [Shared].
func markCached(resp evaluation.Response, outcome string) evaluation.Response {
	resp.Cache = outcome
	resp.Evaluator = "cache"
	return resp
}

func markMissed(resp evaluation.Response, err error) (evaluation.Response, error) {
	resp.Cache = Miss
	return resp, err
}
