// Package oomkill tells processes that the kernel killed because their container had no
// memory left from those that somebody else killed: their ends look the same.
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
)

// Container is where containers find their own control groups.
const Container = "/sys/fs/cgroup"

// Watch knows how many processes of this container the kernel killed for memory. The
// zero value and nil know of none. It is safe for concurrent use.
type Watch struct {
	counter, limit string // files

	mu    sync.Mutex
	known int64 // kills that have been told, or were before
}

// hierarchies are the files of control groups of version 2 and of version 1.
var hierarchies = []struct{ counter, limit string }{
	{"memory.events", "memory.max"},
	{"memory/memory.oom_control", "memory/memory.limit_in_bytes"},
}

// New returns a watch of the control group at root, for which there is [Container].
// Where nothing is counted it knows of no kills.
func New(root string) *Watch {
	for _, h := range hierarchies {
		w := &Watch{counter: filepath.Join(root, h.counter), limit: filepath.Join(root, h.limit)}
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
	content, err := os.ReadFile(w.limit)
	limit, parseErr := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil || parseErr != nil || limit >= unlimited {
		return "give the function a larger memory limit, or make the package smaller"
	}
	return fmt.Sprintf("its container may use %d MiB: raise that limit, or make the package smaller", limit>>20)
}

// unlimited is less than what version 1 has for no limit.
const unlimited = 1 << 60
