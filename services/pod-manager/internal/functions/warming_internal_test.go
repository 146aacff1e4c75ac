package functions

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
)

// world is what images are looked up in.
type world struct {
	mu       sync.Mutex
	attempts map[string][]time.Time
	now      int
	most     int
	warm     map[string]time.Time
}

// warmUp has images that are unavailable, silent, wrong or good, and pods that are slow or
// refused, as their names say.
func (w *world) warmUp(ctx context.Context, image string) (func(context.Context) error, error) {
	if err := w.lookUp(ctx, image); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		switch {
		case strings.HasPrefix(image, "refused"):
			return fault.New(fault.Precondition, "exceeded quota")
		case strings.HasPrefix(image, "slow"):
			<-ctx.Done()
			return ctx.Err()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.warm[image] = time.Now()
		return nil
	}, nil
}

// lookUp looks an image up.
func (w *world) lookUp(ctx context.Context, image string) error {
	w.mu.Lock()
	w.attempts[image] = append(w.attempts[image], time.Now())
	w.now++
	w.most = max(w.most, w.now)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.now--
		w.mu.Unlock()
	}()
	switch {
	case strings.HasPrefix(image, "silent"):
		ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("no answer"))
		defer cancel()
		<-ctx.Done()
		return fault.New(fault.Unavailable, "look up: %w", context.Cause(ctx))
	case strings.HasPrefix(image, "unavailable"):
		return fault.New(fault.Unavailable, "connection refused")
	case strings.HasPrefix(image, "busy"):
		return fault.New(fault.Exhausted, "too many")
	case strings.HasPrefix(image, "wrong"):
		return fault.New(fault.Precondition, "no such image")
	}
	return nil
}

func newWorld() *world {
	return &world{attempts: make(map[string][]time.Time), warm: make(map[string]time.Time)}
}

// entries are those of images.
func entries(images ...string) []cacheconfig.Entry {
	var list []cacheconfig.Entry
	for _, image := range images {
		list = append(list, cacheconfig.Entry{Image: image})
	}
	return list
}

// many are n images of a kind.
func many(kind string, n int) []string {
	var images []string
	for i := range n {
		images = append(images, kind+strconv.Itoa(i))
	}
	return images
}

func TestNoImageHoldsUpAnother(t *testing.T) {
	tests := map[string]struct {
		reason string
		bad    []string
		within time.Duration // the good one behind them has its pod
	}{
		"unavailable":   {"a pause takes nobody's turn", many("unavailable", 100), 0},
		"busy":          {"nor does the resolver's own limit", many("busy", 100), 0},
		"wrong":         {"nor does an image that somebody has to push first", many("wrong", 100), 0},
		"slow":          {"a pod that takes its time takes nobody's turn", many("slow", 100), 0},
		"some silent":   {"there are turns enough", many("silent", 15), 0},
		"many silent":   {"and each ends", many("silent", 31), 30 * time.Second},
		"no end of bad": {"first attempts come before later ones", many("silent", 160), 10 * 30 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				warming := newWarming(Config{WarmUp: w.warmUp, Log: slog.New(slog.DiscardHandler)})
				defer warming.end()
				begin := time.Now()
				warming.follow(t.Context(), entries(append(tc.bad, "good")...))
				<-time.After(time.Hour)
				w.mu.Lock()
				defer w.mu.Unlock()
				if at, ok := w.warm["good"]; !ok || at.Sub(begin) > tc.within {
					t.Errorf("the good one has its pod: %t, after %v, want it within %v: %s", ok, at.Sub(begin), tc.within, tc.reason)
				}
				if w.most > attemptsAtOnce {
					t.Errorf("%d attempts at a time, want at most %d", w.most, attemptsAtOnce)
				}
			})
		})
	}
}

func TestPausesGrow(t *testing.T) {
	tests := map[string]struct {
		reason      string
		image       string
		least, most int // attempts in an hour
	}{
		"unavailable": {"about one a minute in the end", "unavailable", 40, 70},
		"wrong":       {"somebody may push it", "wrong", 40, 70},
		"refused":     {"somebody may raise the quota", "refused", 40, 70},
		"good":        {"once is enough", "good", 1, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				warming := newWarming(Config{WarmUp: w.warmUp, Log: slog.New(slog.DiscardHandler)})
				warming.follow(t.Context(), entries(tc.image))
				<-time.After(time.Hour)
				warming.end()
				got := w.attempts[tc.image]
				if len(got) < tc.least || len(got) > tc.most {
					t.Errorf("%d attempts in an hour, want %d to %d: %s", len(got), tc.least, tc.most, tc.reason)
				}
				if len(got) > 1 && got[1].Sub(got[0]) > 3*time.Second {
					t.Errorf("the second attempt after %v, want one soon: the image-resolver may just come last", got[1].Sub(got[0]))
				}
			})
		})
	}
}

func TestWhatLeavesTheFileIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		warming := newWarming(Config{WarmUp: w.warmUp, Log: slog.New(slog.DiscardHandler)})
		warming.follow(t.Context(), entries("unavailable", "good"))
		<-time.After(time.Second)
		warming.follow(t.Context(), entries("good"))
		<-time.After(time.Hour)
		warming.follow(t.Context(), entries("good", "unavailable"))
		<-time.After(time.Second)
		warming.end()
		if got := len(w.attempts["unavailable"]); got != 2 {
			t.Errorf("%d attempts, want one each time that it came into the file", got)
		}
		if got := len(w.attempts["good"]); got != 1 {
			t.Errorf("%d attempts for what stayed in the file, want 1", got)
		}
	})
}
