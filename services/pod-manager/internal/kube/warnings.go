// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
	"sync"
)

// maxWarnings bounds the memory of what has been logged.
const maxWarnings = 100

// warnings logs what the API server warns about, such as a template that it finds
// outdated: each text once, since the API repeats it for each pod.
type warnings struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]struct{}
}

func newWarnings(log *slog.Logger) *warnings {
	return &warnings{log: log, said: make(map[string]struct{})}
}

// HandleWarningHeaderWithContext takes a warning. Code 299 is the one that Kubernetes
// uses; others are about caches in between.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code != 299 || text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, said := w.said[text]; said || len(w.said) >= maxWarnings {
		return
	}
	w.said[text] = struct{}{}
	w.log.WarnContext(ctx, "the Kubernetes API warns", "warning", text)
}
