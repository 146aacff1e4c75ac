// SPDX-License-Identifier: Apache-2.0

package sandboxeval

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// TestImagesStayOpenForSpareProcesses has spare processes of an image use its files as long as any may
// be left.
func TestImagesStayOpenForSpareProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened, released atomic.Int32
		open := func() (string, func(), error) {
			opened.Add(1)
			return "/root", func() { released.Add(1) }, nil
		}
		k := keeper{images: map[string]*openImage{}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.run(ctx)
		}()
		use := func() *openImage {
			image, err := k.openImage("sha256:a", open)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
		first, second := use(), use()
		first.releaseImage()
		<-time.After(time.Hour)
		synctest.Wait()
		if opened.Load() != 1 || released.Load() != 0 {
			t.Errorf("opened %d times, released %d times while it is in use", opened.Load(), released.Load())
		}
		second.releaseImage()
		<-time.After(function.PreforkUnused)
		synctest.Wait()
		if released.Load() != 0 {
			t.Error("released before the last spare process has ended")
		}
		<-time.After(3 * time.Minute)
		synctest.Wait()
		if released.Load() != 1 {
			t.Errorf("released %d times, want once", released.Load())
		}
		use().releaseImage()
		<-time.After(time.Second)
		cancel()
		<-done
		if opened.Load() != 2 || released.Load() != 2 {
			t.Errorf("opened %d times, released %d times, want twice each", opened.Load(), released.Load())
		}
	})
}

func TestImageThatCannotBeOpened(t *testing.T) {
	k := keeper{images: map[string]*openImage{}}
	refused := errors.New("refused")
	_, err := k.openImage("sha256:a", func() (string, func(), error) { return "", nil, refused })
	if !errors.Is(err, refused) || len(k.images) != 0 {
		t.Errorf("error %v, %d images kept", err, len(k.images))
	}
}

// TestIdleImagesAreClosedWhenTheStoreIsFull closes the images that no evaluation uses, after their spare processes.
func TestIdleImagesAreClosedWhenTheStoreIsFull(t *testing.T) {
	var events []string
	k := keeper{images: map[string]*openImage{}}
	use := func(digest string) *openImage {
		image, err := k.openImage(digest, func() (string, func(), error) {
			return "/root", func() { events = append(events, "closed "+digest) }, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	use("sha256:idle").releaseImage()
	used := use("sha256:used")
	k.closeIdle(func(which func(function string) bool) {
		for _, function := range []string{"fn@sha256:idle", "fn@sha256:used", "fn"} {
			if which(function) {
				events = append(events, "ended "+function)
			}
		}
	})
	if want := []string{"ended fn@sha256:idle", "closed sha256:idle"}; !slices.Equal(events, want) {
		t.Errorf("%v, want %v", events, want)
	}
	used.releaseImage()
	k.closeIdle(func(func(string) bool) {})
	if len(k.images) > 0 || events[len(events)-1] != "closed sha256:used" {
		t.Errorf("%v, and %d images are open, want none", events, len(k.images))
	}
}
