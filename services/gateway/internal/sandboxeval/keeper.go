// SPDX-License-Identifier: Apache-2.0

package sandboxeval

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// keepFor is how long an image stays open after its last evaluation. It exceeds the lifetime of the image's spare
// processes, which use its files.
const keepFor = function.PreforkUnused + time.Minute

// keeper manages open images, which spare processes may use.
type keeper struct {
	mu     sync.Mutex
	images map[string]*kept // by digest
}

// kept is an open image.
type kept struct {
	root    string
	release func()
	users   int
	used    time.Time
	// commands are stored commands of the image, at most [maxCommands].
	commands []command
}

// held is an open image in use. Callers must release it.
type held struct {
	*kept
	keeper *keeper
}

// openImage returns a stored image, or opens it.
func (k *keeper) openImage(digest string, open func() (root string, release func(), err error)) (*held, error) {
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
		release() // another evaluation was faster
	} else {
		image = &kept{root: root, release: release}
		k.images[digest] = image
	}
	image.users++
	return &held{kept: image, keeper: k}, nil
}

// holdImage returns a stored image.
func (k *keeper) holdImage(digest string) *held {
	k.mu.Lock()
	defer k.mu.Unlock()
	image, ok := k.images[digest]
	if !ok {
		return nil
	}
	image.users++
	return &held{kept: image, keeper: k}
}

// releaseImage ends the use of an image.
func (h *held) releaseImage() {
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

// closeUnused closes the images that were not used since then.
func (k *keeper) closeUnused(since time.Time) {
	for _, image := range k.takeUnused(since) {
		image.release()
	}
}

// takeUnused removes and returns the images that were not used since then.
func (k *keeper) takeUnused(since time.Time) map[string]*kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	taken := map[string]*kept{}
	for digest, image := range k.images {
		if image.users == 0 && !image.used.After(since) {
			taken[digest] = image
			delete(k.images, digest)
		}
	}
	return taken
}

// closeIdle calls forget, which stops spare processes, and closes all images without evaluations.
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

// nameEnd returns the end of the name of a function whose image has a digest.
func nameEnd(digest string) string { return "@" + digest }
