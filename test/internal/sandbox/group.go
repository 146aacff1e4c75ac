// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const mountPoint = "/sys/fs/cgroup"

// prefix is the beginning of the names of control groups and directories. The process ID of the owner follows it.
const prefix = "fnr-sandbox-"

// layout contains the paths of the memory controller's files, which differ between cgroup v1 and v2.
type layout struct {
	root                   string // directory of the hierarchy
	limit, usage, inactive string
}

var (
	v1 = layout{
		filepath.Join(mountPoint, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes",
		"total_inactive_file",
	}
	v2 = layout{mountPoint, "memory.max", "memory.current", "inactive_file"}
)

// Group is a control group with a memory limit and a CPU weight.
type Group struct {
	layout
	dir string
	cpu string // directory of the group in the CPU controller; empty without this controller
}

// memoryController returns the file names of this machine's memory controller. In cgroup v2, it also enables the
// controller for new groups.
func memoryController() (layout, error) {
	if os.Geteuid() != 0 {
		return layout{}, errors.New("only root can make control groups")
	}
	if _, err := os.Stat(filepath.Join(v1.root, v1.limit)); err == nil {
		return v1, nil // if v2 is mounted too, it does not have this controller
	}
	controllers, err := os.ReadFile(filepath.Join(v2.root, "cgroup.controllers"))
	if err != nil || !strings.Contains(string(controllers), "memory") {
		return layout{}, errors.New("there is no memory controller in " + mountPoint)
	}
	return v2, os.WriteFile(filepath.Join(v2.root, "cgroup.subtree_control"), []byte("+memory"), 0o600)
}

// NewGroup creates a control group with a memory limit in bytes. owner is the ID of the process that uses the group.
// The group's name contains this ID.
func NewGroup(owner int, name string, limit int64) (*Group, error) {
	kind, err := memoryController()
	if err != nil {
		return nil, err
	}
	g := &Group{layout: kind, dir: filepath.Join(kind.root, prefix+strconv.Itoa(owner)+"-"+name)}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, g.limit), []byte(strconv.FormatInt(limit, 10)), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("limit memory: %w", err), os.Remove(g.dir))
	}
	g.cpu = newProcessors(g.dir)
	return g, nil
}

// Add moves a process into the group.
func (g *Group) Add(pid int) error {
	for _, dir := range []string{g.dir, g.cpu} {
		if dir == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
			return fmt.Errorf("join the control group: %w", err)
		}
	}
	return nil
}

// Used returns the group's memory usage in bytes. Like the kubelet, it does not count cached file contents that the
// kernel can drop when memory is low.
func (g *Group) Used() int64 {
	content, err := os.ReadFile(filepath.Join(g.dir, g.usage))
	if err != nil {
		return 0
	}
	used, _ := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	return used - g.readValue("memory.stat", g.inactive)
}

// readValue reads a number from a file with lines "name number". It returns 0 if the name is missing.
func (g *Group) readValue(file, name string) int64 {
	content, _ := os.ReadFile(filepath.Join(g.dir, file))
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			return n
		}
	}
	return 0
}

// Remove kills the group's processes and removes the group.
func (g *Group) Remove() error {
	err := removeGroup(g.dir)
	if g.cpu != "" {
		err = errors.Join(err, removeGroup(g.cpu))
	}
	return err
}

// removeGroup kills the processes in a control group and removes the group. It retries, because the kernel removes
// killed processes from a group with a delay.
func removeGroup(dir string) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		content, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, field := range strings.Fields(string(content)) {
			// Skip the ID 0, which stands for a process of another PID namespace: kill(0) would kill our own process group.
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		err := os.Remove(dir)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return nil
		case time.Now().After(end):
			return fmt.Errorf("remove a control group: %w", err)
		}
	}
}
