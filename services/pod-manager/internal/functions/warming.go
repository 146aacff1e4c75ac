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
	// firstPause is the time before the second attempt: when everything starts at
	// once, the image-resolver may come last.
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

// warmUp has a pod of one image made. What is in the way may go at any time, be it that
// something comes back or that somebody repairs it.
func (w *warming) warmUp(ctx context.Context, image string) {
	failed := fault.Class(-1) // none
	for wait := firstPause; ; wait = min(2*wait, maxPause) {
		err := w.attempt(ctx, image)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			w.config.Log.InfoContext(ctx, "there is a pod before anybody asks", "image", image)
			return
		}
		if class := fault.Of(err); class != failed { // not each time
			failed = class
			w.config.Log.WarnContext(ctx, "the pod at the start has to wait, and is tried again", "image", image, "error", err)
		}
		if !pause.For(ctx, jittered(wait)) {
			return
		}
	}
}

// attempt is one attempt, which begins when it is its turn.
func (w *warming) attempt(ctx context.Context, image string) error {
	await, err := w.begin(ctx, image)
	if err != nil {
		return err
	}
	return await(ctx)
}

// begin has an image looked up, and its pod made.
func (w *warming) begin(ctx context.Context, image string) (await func(context.Context) error, err error) {
	if err := w.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer w.turns.Release(1)
	return w.config.WarmUp(ctx, image)
}

// jittered returns d, or up to a quarter more, so that images that failed together are
// not looked up together again.
func jittered(d time.Duration) time.Duration {
	return d + rand.N(d/4) //nolint:gosec // spreading load needs no secret
}
