package manager

import (
	"context"
	"fmt"
	"slices"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// WarmUp has a pod of the image made for which nobody waits yet, unless there is one. It
// returns once that is under way, with what waits until the pod is ready: to be called
// once, with an error that says why there will be none. The pod is not wanted any more if
// its context ends before.
func (m *Manager) WarmUp(ctx context.Context, image string) (await func(context.Context) error, err error) {
	if err := m.synced(ctx, unheard); err != nil {
		return nil, err
	}
	resolved, err := m.config.Images.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: image})
	if err != nil {
		return nil, fmt.Errorf("look up the image %s: %w", image, err)
	}
	what := function(resolved)
	f := pool.Function{Reference: what.Reference, Digest: what.Digest}
	outcome := make(chan error, 1)
	err = m.ask(ctx, func(l *loop) {
		l.images[f] = what
		l.warming[f] = append(l.warming[f], outcome)
		l.handle(pool.WarmUp{Function: f})
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		select {
		case err := <-outcome:
			return err
		case <-ctx.Done():
			m.tell(func(l *loop) { l.coolDown(f, outcome) })
			return ctx.Err()
		case <-m.ended:
			return errEnded()
		}
	}, nil
}

// warmed answers those who wait for a pod of a function to become ready, if it did or
// will not.
func (l *loop) warmed(f pool.Function) {
	if len(l.warming[f]) == 0 {
		return
	}
	pending, err := l.machine.Warming(f)
	if pending {
		return
	}
	for _, outcome := range l.warming[f] {
		outcome <- err // has room for the only one
	}
	delete(l.warming, f)
}

// coolDown ends the wait of one who wanted a pod of a function.
func (l *loop) coolDown(f pool.Function, outcome chan error) {
	waiting := slices.DeleteFunc(l.warming[f], func(other chan error) bool { return other == outcome })
	if len(waiting) > 0 {
		l.warming[f] = waiting
		return
	}
	if _, ok := l.warming[f]; ok {
		delete(l.warming, f)
		l.handle(pool.WarmUpEnded{Function: f})
	}
}
