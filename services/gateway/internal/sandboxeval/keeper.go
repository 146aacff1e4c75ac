// SPDX-License-Identifier: Apache-2.0

package sandboxeval

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// keepFor is the time for which an image's files are kept after its last evaluation. Spare processes (started in
// advance) use these files too. Therefore keepFor is longer than the lifetime of unused spare processes.
const keepFor = function.PreforkUnused + time.Minute

// keeper keeps the files of images available between evaluations, because spare processes (started in advance) use
// them.
type keeper struct {
	mu     sync.Mutex
	images map[string]*openImage // key: the image's digest
}

// openImage is an image whose files stay available while evaluations use it, and for the time keepFor afterwards. The
// keeper's mu guards users, used and commands.
type openImage struct {
	keeper  *keeper
	root    string
	release func()
	users   int
	used    time.Time
	// commands contains up to [maxCommands] commands that start functions of the image, beginning with the oldest.
	commands []command
}

// openImage returns the image with the given digest. If the image is not open yet, openImage calls the function open,
// which may pull the image. Callers must call releaseImage after use.
func (k *keeper) openImage(digest string, open func() (root string, release func(), err error)) (*openImage, error) {
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
		image = &openImage{keeper: k, root: root, release: release}
		k.images[digest] = image
	}
	image.users++
	return image, nil
}

// holdImage returns the open image with the given digest, or nil. Callers must call releaseImage after use.
func (k *keeper) holdImage(digest string) *openImage {
	k.mu.Lock()
	defer k.mu.Unlock()
	image, ok := k.images[digest]
	if !ok {
		return nil
	}
	image.users++
	return image
}

func (i *openImage) releaseImage() {
	i.keeper.mu.Lock()
	defer i.keeper.mu.Unlock()
	i.users--
	i.used = time.Now()
}

// run closes images that were unused for the time keepFor. The image store may then delete their files. When ctx ends,
// run closes all unused images.
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

// closeUnused closes the images that no evaluation has used since the given time.
func (k *keeper) closeUnused(since time.Time) {
	for _, image := range k.takeUnused(since) {
		image.release()
	}
}

// takeUnused removes and returns the images that no evaluation has used since the given time.
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

// closeIdle closes all images without running evaluations, to free space in the image store. Spare processes (started
// in advance) use the images too. Therefore closeIdle first calls forget. The function forget stops the spare processes
// of all functions for which its argument returns true.
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

// nameEnd returns the end of a function's name: "@" and the digest of its image. Because of the digest, functions of
// different images have different names. closeIdle also reads the digest to find the image of a function.
func nameEnd(digest string) string { return "@" + digest }
