// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Kills distinguishes processes that the kernel killed because their container ran out of memory from processes that
// another process killed: the signal is SIGKILL in both cases. The zero value and nil never explain a kill. It is
// safe for concurrent use.
type Kills struct {
	root, counter string // directory of the control group, and its file that counts kills

	mu        sync.Mutex
	explained int64 // kills before the start, or already returned by Explain
}

// counters contains the names of the files that count kills, in version 2 and version 1 of control groups.
var counters = []string{"memory.events", "memory/memory.oom_control"}

// NewKills returns a Kills for the control group at root, such as [Container].
func NewKills(root string) *Kills {
	for _, counter := range counters {
		k := &Kills{root: root, counter: filepath.Join(root, counter)}
		if kills, ok := k.countKills(); ok {
			k.explained = kills
			return k
		}
	}
	return &Kills{}
}

// Explain returns the cause and the remedy if the kernel killed a process for memory, and otherwise an empty string.
// Callers must call it for each process that was killed by a SIGKILL that they did not send. Each kill of the kernel
// explains a single process.
func (k *Kills) Explain() string {
	if k == nil || k.counter == "" {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	kills, ok := k.countKills()
	if !ok || kills <= k.explained {
		return ""
	}
	k.explained++
	return k.Text()
}

// Text returns the message for a function that ran out of memory: the cause and the remedy.
func (k *Kills) Text() string { return "out of memory: " + k.remedy() }

// countKills reads the number of kills. It returns false if the number is unknown.
func (k *Kills) countKills() (kills int64, ok bool) {
	content, err := os.ReadFile(k.counter)
	kills, ok = readNumbers(content)["oom_kill"]
	return kills, ok && err == nil
}

func (k *Kills) remedy() string {
	limit, ok := int64(0), false
	if k != nil {
		limit, ok = MemoryLimit(k.root)
	}
	if !ok {
		return "give the function a larger memory limit, or make the package smaller"
	}
	return fmt.Sprintf("its container may use %d MiB: raise that limit, or make the package smaller", limit>>20)
}
