// SPDX-License-Identifier: Apache-2.0

// Package oomkill tells processes that the kernel killed because their container had no
// memory left from processes that another process killed: both end with SIGKILL.
package oomkill

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

// Watch knows how many processes of this container the kernel killed for memory. The
// zero value and nil know of none. It is safe for concurrent use.
type Watch struct {
	root, counter string // of the control group, and the file in it

	mu    sync.Mutex
	known int64 // kills that have been told, or were before
}

// counters are the files that count kills, of control groups of version 2 and of version 1.
var counters = []string{"memory.events", "memory/memory.oom_control"}

// New returns a watch of the control group at root, for which there is
// [cgroup.Container]. Where nothing is counted it knows of no kills.
func New(root string) *Watch {
	for _, counter := range counters {
		w := &Watch{root: root, counter: filepath.Join(root, counter)}
		if kills, ok := w.kills(); ok {
			w.known = kills
			return w
		}
	}
	return &Watch{}
}

// Explain is called for each process that ended with SIGKILL that we did not send. It
// says what is wrong and what to do if the kernel did it for memory; nothing if not. Each
// of the kernel's kills explains one end.
func (w *Watch) Explain() string {
	if w == nil || w.counter == "" {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	kills, ok := w.kills()
	if !ok || kills <= w.known {
		return ""
	}
	w.known++
	return "out of memory: " + w.advice()
}

// kills reads how many processes were killed; false if that is not known.
func (w *Watch) kills() (kills int64, ok bool) {
	content, err := os.ReadFile(w.counter)
	if err != nil {
		return 0, false
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), "oom_kill "); found {
			kills, err := strconv.ParseInt(value, 10, 64)
			return kills, err == nil
		}
	}
	return 0, false
}

// advice says what to do.
func (w *Watch) advice() string {
	limit, ok := cgroup.MemoryLimit(w.root)
	if !ok {
		return "give the function a larger memory limit, or make the package smaller"
	}
	return fmt.Sprintf("its container may use %d MiB: raise that limit, or make the package smaller", limit>>20)
}
