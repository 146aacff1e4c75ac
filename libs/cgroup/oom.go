// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Kills finds out whether a process that died of SIGKILL was killed by the kernel because the container ran out of
// memory, or by another process. It compares the kernel's count of such kills with the kills that it has already
// explained. The zero value and nil never explain a kill. Kills is safe for concurrent use.
type Kills struct {
	root, counter string // directory of the control group, and its file that counts kills

	mu        sync.Mutex
	explained int64 // kills before the start, or already returned by Explain
}

// counters contains the names of the files where the kernel counts processes killed for lack of memory, in
// version 2 and version 1 of control groups.
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

// Explain returns the cause of a SIGKILL and the remedy if the kernel killed a process because memory ran out.
// Otherwise it returns an empty string. Callers must call it once for each process that was killed by a SIGKILL
// that they did not send, because each kill by the kernel explains a single process.
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

// countKills reads how many processes the kernel has killed in this control group because memory ran out. It
// returns false if the number is unknown.
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
