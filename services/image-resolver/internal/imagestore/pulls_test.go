// SPDX-License-Identifier: Apache-2.0

package imagestore_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// TestPullsAreBounded opens more images than are pulled at a time, of several registries.
func TestPullsAreBounded(t *testing.T) {
	const most, mostOfOne = 4, 3
	begun, proceed := make(chan string, 12), make(chan struct{})
	source := &images{dir: t.TempDir(), before: func(_ context.Context, digest string) error {
		begun <- digest
		<-proceed
		return nil
	}}
	store := newStore(t, t.TempDir(), source)
	var callers sync.WaitGroup
	pulls := func(registry string, n int) {
		for i := range n {
			digest := source.push(t, map[string]string{registry: strconv.Itoa(i)})
			waits := make(chan struct{}, 1)
			callers.Go(func() {
				_, release, err := store.Open(t.Context(), registry+"/fn", digest, func(string) {
					select {
					case waits <- struct{}{}:
					default:
					}
				})
				if err != nil {
					t.Error(err)
					return
				}
				release()
			})
			<-waits
		}
	}
	pulls("slow.example.com", 6)
	for range mostOfOne {
		<-begun
	}
	pulls("other.example.com", 6) // which begin beside those
	for range most - mostOfOne {
		<-begun
	}
	if n := len(begun); n > 0 {
		t.Errorf("%d images more than %d are pulled at a time, or than %d of a registry", n, most, mostOfOne)
	}
	close(proceed)
	callers.Wait()
}

// TestPullGoesOnForCallersThatComeAgain has callers with less time than a pull takes.
func TestPullGoesOnForCallersThatComeAgain(t *testing.T) {
	source := &images{dir: t.TempDir(), before: func(ctx context.Context, _ string) error {
		select {
		case <-time.After(11 * time.Minute):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	digest, dir := source.push(t, map[string]string{"a": "1"}), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, dir, source)
		attempt := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			_, release, err := store.Open(ctx, repository, digest, nil)
			if err == nil {
				release()
			}
			return err
		}
		for range 3 {
			if err := attempt(); fault.Of(err) != fault.DeadlineExceeded {
				t.Errorf("error %v, want that of the caller's context", err)
			}
			<-time.After(time.Minute)
		}
		if err := attempt(); err != nil || source.layers.Load() != 1 {
			t.Errorf("error %v after %d downloads, want the image by the first one", err, source.layers.Load())
		}
	})
}

// TestPullEndsAfterItsLastCaller has no callers any more that come again, one of them while it waits for a slot.
func TestPullEndsAfterItsLastCaller(t *testing.T) {
	source := &images{dir: t.TempDir(), before: func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	var digests []string
	for i := range 4 {
		digests = append(digests, source.push(t, map[string]string{"a": strconv.Itoa(i)}))
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, dir, source)
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for _, digest := range digests {
			callers.Go(func() {
				if _, _, err := store.Open(ctx, repository, digest, nil); fault.Of(err) != fault.Canceled {
					t.Errorf("error %v, want that of the caller's context", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		callers.Wait()
		synctest.Wait()
		if n := strings.Count(left(t, dir), "locks/"); n != 3 {
			t.Errorf("%d pulls go on, want those three that have begun", n)
		}
		<-time.After(6 * time.Minute)
		synctest.Wait()
		if got := left(t, dir); got != "" {
			t.Errorf("%s is left in the store", got)
		}
	})
}
