// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"

	"github.com/krm-function-runner/function-runner/libs/cache"
)

// errNotCached is a question that only a registry answers.
var errNotCached = errors.New("not cached")

// Cached returns what Resolve would return without waiting. What is due is refreshed in the
// background.
func (r *Resolver) Cached(ctx context.Context, req Request) (Result, bool) {
	name, err := r.name(req, func(repository string) ([]string, error) {
		found, ok := r.cached(ctx, r.tagsQuery(repository, false))
		if !ok {
			return nil, errNotCached
		}
		return found.Value.tags, nil
	})
	if err != nil {
		return Result{}, false
	}
	found, ok := r.cached(ctx, r.imageQuery(name, req))
	if !ok {
		return Result{}, false
	}
	return result(name, found), true
}

// cached asks the cache, and counts an answer.
func (r *Resolver) cached(ctx context.Context, q cache.Query[string, answer]) (cache.Answer[answer], bool) {
	found, ok := r.cache.Cached(ctx, q)
	if ok {
		r.metrics.answered(ctx, found.Source)
	}
	return found, ok
}
