// SPDX-License-Identifier: Apache-2.0

package osthread_test

import (
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/osthread"
)

// TestOwn has so many at a time that one of them would get the main thread: each has another thread, which is not that.
func TestOwn(t *testing.T) {
	const many = 100
	var all sync.WaitGroup
	ids, leave := make(chan int, many), make(chan struct{})
	for range many {
		all.Go(func() { osthread.Own(func() { ids <- unix.Gettid(); <-leave }) })
	}
	seen := make(map[int]bool)
	for range many {
		id := <-ids
		if id == os.Getpid() || seen[id] {
			t.Errorf("thread %d is the main one, or another's", id)
		}
		seen[id] = true
	}
	close(leave)
	all.Wait()
}
