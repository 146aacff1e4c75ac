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

// mountPoint is the mount point of the hierarchies of control groups.
const mountPoint = "/sys/fs/cgroup"

// prefix is the prefix of the names of all groups and directories of this program. The id of the creating process
// follows.
const prefix = "fnr-sandbox-"

// layout contains the file names of a version of the memory controller.
type layout struct {
	root                             string // directory of the hierarchy
	limit, usage, inactive, killedIn string
}

var (
	v1 = layout{
		filepath.Join(mountPoint, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes",
		"total_inactive_file", "memory.oom_control",
	}
	v2 = layout{mountPoint, "memory.max", "memory.current", "inactive_file", "memory.events"}
)

// Group is a control group with a memory limit, and with a share of the processors.
type Group struct {
	layout
	dir string
	cpu string // directory of the processors' controller, which may be the same; empty without a controller
}

// memoryController returns the layout of the memory controller that can be used.
func memoryController() (layout, error) {
	if os.Geteuid() != 0 {
		return layout{}, errors.New("only root can make control groups")
	}
	if _, err := os.Stat(filepath.Join(v1.root, v1.limit)); err == nil {
		return v1, nil // even if version 2 is mounted too: the controller is here
	}
	controllers, err := os.ReadFile(filepath.Join(v2.root, "cgroup.controllers"))
	if err != nil || !strings.Contains(string(controllers), "memory") {
		return layout{}, errors.New("there is no memory controller in " + mountPoint)
	}
	return v2, os.WriteFile(filepath.Join(v2.root, "cgroup.subtree_control"), []byte("+memory"), 0o600)
}

// NewGroup makes a group, named after the process and name, with a limit in bytes.
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

// Add puts a process into the group.
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

// Used returns the bytes that the group needs: without the cached files that the kernel drops when no memory is left.
// The kubelet counts the same.
func (g *Group) Used() int64 {
	content, err := os.ReadFile(filepath.Join(g.dir, g.usage))
	if err != nil {
		return 0
	}
	used, _ := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	return used - g.readValue("memory.stat", g.inactive)
}

// Killed returns the number of processes of the group the kernel has killed for memory.
func (g *Group) Killed() int64 { return g.readValue(g.killedIn, "oom_kill") }

// readValue returns a number by its name in a file of the group. A missing number is zero.
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

// Remove kills the processes in the group, and removes it.
func (g *Group) Remove() error {
	err := removeGroup(g.dir)
	if g.cpu != "" {
		err = errors.Join(err, removeGroup(g.cpu))
	}
	return err
}

// removeGroup tries again while the kernel counts a process that has just been killed.
func removeGroup(dir string) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		content, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, field := range strings.Fields(string(content)) {
			// Process id 0 is a process of another namespace: kill(0) would kill this process.
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
