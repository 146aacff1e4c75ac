package functions

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/pause"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
)

const (
	// attemptsAtOnce bounds how many images are looked up at a time. One whose
	// registry is silent takes its place for half a minute.
	attemptsAtOnce = 16
	// firstPause is the time before the second attempt while something is
	// unavailable: when everything starts at once, the image-resolver may come last.
	firstPause = 2 * time.Second
	// maxPause bounds the pauses, of which each is twice the one before.
	maxPause = time.Minute
)

// warming has pods made for the images of the file, each by itself, so that one which
// cannot be had holds up no other.
type warming struct {
	config  Config
	turns   *semaphore.Weighted
	running sync.WaitGroup
	// images are those of the file, with what ends the attempts for each.
	images map[string]context.CancelFunc
}

func newWarming(config Config) *warming {
	return &warming{config: config, turns: semaphore.NewWeighted(attemptsAtOnce), images: make(map[string]context.CancelFunc)}
}

// follow has pods made for the images that are new in the file, in the background until
// ctx ends, and gives up those that are there no more.
func (w *warming) follow(ctx context.Context, entries []cacheconfig.Entry) {
	if w.config.WarmUp == nil {
		return
	}
	listed := make(map[string]bool, len(entries))
	for _, e := range entries {
		listed[e.Image] = true
		if _, ok := w.images[e.Image]; ok {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		w.images[e.Image] = cancel
		w.running.Go(func() {
			defer cancel()
			w.warmUp(ctx, e.Image)
		})
	}
	for image, cancel := range w.images {
		if !listed[image] {
			cancel()
			delete(w.images, image)
		}
	}
}

// end waits until nothing goes on any more.
func (w *warming) end() {
	for _, cancel := range w.images {
		cancel()
	}
	w.running.Wait()
}

// warmUp has a pod of one image made.
func (w *warming) warmUp(ctx context.Context, image string) {
	for attempt, wait := 1, firstPause; ; attempt, wait = attempt+1, min(2*wait, maxPause) {
		err := w.attempt(ctx, image)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case !passing(err):
			w.config.Log.ErrorContext(ctx, "no pod is made at the start", "image", image, "error", err)
			return
		case attempt == 1:
			w.config.Log.WarnContext(ctx, "the pod at the start has to wait", "image", image, "error", err)
		}
		if !pause.For(ctx, jittered(wait)) {
			return
		}
	}
}

// attempt is one attempt, when it is its turn.
func (w *warming) attempt(ctx context.Context, image string) error {
	if err := w.turns.Acquire(ctx, 1); err != nil {
		return err
	}
	defer w.turns.Release(1)
	return w.config.WarmUp(ctx, image)
}

// passing says whether an attempt may succeed later though nobody does anything.
func passing(err error) bool {
	return fault.Of(err) == fault.Unavailable || fault.Of(err) == fault.Exhausted
}

// jittered returns d, or up to a quarter more, so that images that failed together are
// not looked up together again.
func jittered(d time.Duration) time.Duration {
	return d + rand.N(d/4) //nolint:gosec // spreading load needs no secret
}
