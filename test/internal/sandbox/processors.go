// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
)

// processorsRoot is the root directory of the CPU controller. It exists only in cgroup v1.
var processorsRoot = filepath.Join(mountPoint, "cpu")

// Files and values for the CPU weight of the program under attack. The weight is ten times the default, because the
// program shares its processors with attackers and other programs. In production, it does not share them.
const (
	sharesV1, preferenceV1 = "cpu.shares", "10240"
	sharesV2, preferenceV2 = "cpu.weight", "1000"
)

// newProcessors sets the CPU weight of a group, as a container runtime would. Otherwise, each session would get an
// equal share of the processors. Eight functions have eight sessions, and would get eight times as much as the program.
// The argument memory is the group's directory in the memory controller. The result is the group's directory in the CPU
// controller, or an empty string if there is no CPU controller.
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
