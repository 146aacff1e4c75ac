// SPDX-License-Identifier: Apache-2.0

package cgroup

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

// Kills distinguishes processes that the kernel killed because their container had no memory left
// from processes that another process killed: both end with SIGKILL. The zero value and nil know of
// none. It is safe for concurrent use.
type Kills struct {
	root, counter string // of the control group, and the file in it

	mu        sync.Mutex
	explained int64 // kills that have explained an end, or were before
}

// counters are the files that count kills, of control groups of version 2 and of version 1.
var counters = []string{"memory.events", "memory/memory.oom_control"}

// NewKills returns the kills in the control group at root, for which there is [Container].
// Where nothing is counted it knows of no kills.
func NewKills(root string) *Kills {
	for _, counter := range counters {
		k := &Kills{root: root, counter: filepath.Join(root, counter)}
		if kills, ok := k.count(); ok {
			k.explained = kills
			return k
		}
	}
	return &Kills{}
}

// Explain is called for each process that ended with SIGKILL that we did not send. It
// returns what is wrong and what to do if the kernel did it for memory, else nothing. Each
// of the kernel's kills explains one end.
func (k *Kills) Explain() string {
	if k == nil || k.counter == "" {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	kills, ok := k.count()
	if !ok || kills <= k.explained {
		return ""
	}
	k.explained++
	return k.Text()
}

// Text returns what is wrong with a function that ran out of memory, and what to do.
func (k *Kills) Text() string { return "out of memory: " + k.advice() }

// count reads how many processes were killed; false if that is not known.
func (k *Kills) count() (kills int64, ok bool) {
	content, err := os.ReadFile(k.counter)
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

// advice returns what to do.
func (k *Kills) advice() string {
	limit, ok := int64(0), false
	if k != nil {
		limit, ok = MemoryLimit(k.root)
	}
	if !ok {
		return "give the function a larger memory limit, or make the package smaller"
	}
	return fmt.Sprintf("its container may use %d MiB: raise that limit, or make the package smaller", limit>>20)
}
