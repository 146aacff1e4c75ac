// SPDX-License-Identifier: Apache-2.0

package sandboxeval

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// keepFor is the time for which an image stays open after its last evaluation. It is longer than the lifetime of
// unused spare processes, because the image's spare processes use its files.
const keepFor = function.PreforkUnused + time.Minute

// keeper stores open images, so that their spare processes can use the files between evaluations.
type keeper struct {
	mu     sync.Mutex
	images map[string]*openImage // by digest
}

type openImage struct {
	root    string
	release func()
	users   int
	used    time.Time
	// commands are up to [maxCommands] stored commands of the image, starting with the oldest.
	commands []command
}

// imageRef is a reference to an open image. The image stays open until releaseImage.
type imageRef struct {
	*openImage
	keeper *keeper
}

// openImage returns a reference to the image with a digest. It calls open if the image is not open yet.
func (k *keeper) openImage(digest string, open func() (root string, release func(), err error)) (*imageRef, error) {
	if image := k.holdImage(digest); image != nil {
		return image, nil
	}
	root, release, err := open()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	image, ok := k.images[digest]
	if ok {
		release() // a concurrent evaluation opened the same image
	} else {
		image = &openImage{root: root, release: release}
		k.images[digest] = image
	}
	image.users++
	return &imageRef{openImage: image, keeper: k}, nil
}

// holdImage returns a reference to the image with a digest, or nil if the image is not open.
func (k *keeper) holdImage(digest string) *imageRef {
	k.mu.Lock()
	defer k.mu.Unlock()
	image, ok := k.images[digest]
	if !ok {
		return nil
	}
	image.users++
	return &imageRef{openImage: image, keeper: k}
}

func (h *imageRef) releaseImage() {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	h.users--
	h.used = time.Now()
}

// run closes unused images until ctx ends, and then all images.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-tick.C:
			k.closeUnused(now.Add(-keepFor))
		}
	}
	k.closeUnused(time.Now())
}

// closeUnused closes the images that were not used after since.
func (k *keeper) closeUnused(since time.Time) {
	for _, image := range k.takeUnused(since) {
		image.release()
	}
}

// takeUnused removes and returns the images that were not used after since.
func (k *keeper) takeUnused(since time.Time) map[string]*openImage {
	k.mu.Lock()
	defer k.mu.Unlock()
	taken := map[string]*openImage{}
	for digest, image := range k.images {
		if image.users == 0 && !image.used.After(since) {
			taken[digest] = image
			delete(k.images, digest)
		}
	}
	return taken
}

// closeIdle closes all images without evaluations, even if spare processes use them. Before that it calls forget,
// which stops the spare processes of these images.
func (k *keeper) closeIdle(forget func(which func(function string) bool)) {
	idle := k.takeUnused(time.Now())
	forget(func(function string) bool {
		_, digest, _ := strings.Cut(function, nameEnd(""))
		return idle[digest] != nil
	})
	for _, image := range idle {
		image.release()
	}
}

// nameEnd returns "@" and the digest. It ends the names of all functions of an image, so that functions of different
// images are never the same.
func nameEnd(digest string) string { return "@" + digest }
