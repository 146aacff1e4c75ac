// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
)

// processorsRoot is the directory of version 1 of the processors' controller.
var processorsRoot = filepath.Join(mountPoint, "cpu")

// preference is the weight of a group relative to other processes: in production, the attackers and other programs
// have processors of their own.
const (
	sharesV1, preferenceV1 = "cpu.shares", "10240"
	sharesV2, preferenceV2 = "cpu.weight", "1000"
)

// newProcessors makes the group of processors of a memory group, as containers have it, and
// returns its directory. It is empty if there are no such groups.
//
// Without it, the scheduler makes a group of each session and gives all the same: eight functions,
// which lead sessions, get eight times as much as the program and the attackers together. It does
// not do that in containers.
func newProcessors(memory string) string {
	dir := filepath.Join(processorsRoot, filepath.Base(memory))
	if os.Mkdir(dir, 0o755) == nil {
		if os.WriteFile(filepath.Join(dir, sharesV1), []byte(preferenceV1), 0o600) == nil {
			return dir
		}
		_ = os.Remove(dir)
	}
	_ = os.WriteFile(filepath.Join(filepath.Dir(memory), "cgroup.subtree_control"), []byte("+cpu"), 0o600)
	if os.WriteFile(filepath.Join(memory, sharesV2), []byte(preferenceV2), 0o600) == nil {
		return memory
	}
	return ""
}
