// SPDX-License-Identifier: Apache-2.0

package resultcache

import "github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"

// Held returns the bytes that the cache of a wrapped evaluator holds.
func Held(e evaluation.Evaluator) int64 { return e.(*evaluator).cache.size() }
