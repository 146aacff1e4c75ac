// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Limits bound what the processes of a group have together.
type Limits struct {
	// Memory is in bytes; zero is no limit. Processes counts threads too.
	Memory, Processes int64
}

// hierarchy is a directory in which groups are made, and what is written to the files of each.
type hierarchy struct {
	dir      string
	settings []setting
	// events is the file that counts kills for memory; empty if another hierarchy has it.
	events string
}

type setting struct {
	file     string
	value    int64
	optional bool // kernels without swap accounting lack the file
}

// Groups are control groups of this program that limit other processes. A group is used again when its processes
// have ended: the kernel takes milliseconds to move the first thread into a new one. Nil has none.
type Groups struct {
	hierarchies []hierarchy
	version     int
	limits      Limits
	name        string // of these groups: another program may have had this one's id

	mu   sync.Mutex
	free []*Group
	made int
}

// NewGroups returns groups with these limits. It fails where this program may make none, or none with both limits.
func NewGroups(limits Limits) (*Groups, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("find this program's control group: %w", err)
	}
	g := &Groups{limits: limits, name: strings.ToLower(rand.Text()[:8])}
	g.hierarchies, g.version, err = find(parseMounts(string(mounts)), parseOwn(string(own)), limits, mayUse)
	if err != nil {
		return nil, err
	}
	for _, h := range g.hierarchies {
		removeLeft(h.dir)
	}
	first, err := g.Take()
	if err != nil {
		return nil, err
	}
	first.Release()
	return g, nil
}

// Version returns the version of control groups, which is 1 or 2.
func (g *Groups) Version() int { return g.version }

// Take returns an empty group. The caller releases it.
func (g *Groups) Take() (*Group, error) {
	if g == nil {
		return nil, nil //nolint:nilnil // nil limits nothing
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, group := range g.free {
		if group.empty() {
			g.free = append(g.free[:i:i], g.free[i+1:]...)
			group.kills, _ = group.count()
			return group, nil
		}
	}
	g.made++
	return g.create(fmt.Sprintf("%s%d-%s-%d", prefix, os.Getpid(), g.name, g.made))
}

// Close removes all groups. No process may be started in one any more. The next program removes what has processes that
// do not end.
func (g *Groups) Close() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var failures error
	for _, group := range g.free {
		failures = errors.Join(failures, group.remove())
	}
	g.free = nil
	return failures
}

// prefix begins the names of groups, before the id of this program.
const prefix = "function-runner-"

// create makes a group.
func (g *Groups) create(name string) (*Group, error) {
	group := &Group{groups: g}
	for _, h := range g.hierarchies {
		dir := filepath.Join(h.dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // all may read limits
			return nil, errors.Join(fmt.Errorf("make a control group: %w", err), group.remove())
		}
		group.dirs = append(group.dirs, dir)
		for _, s := range h.settings {
			if err := s.write(dir); err != nil {
				return nil, errors.Join(fmt.Errorf("limit a control group: %w", err), group.remove())
			}
		}
		if h.events != "" {
			group.events = filepath.Join(dir, h.events)
		}
	}
	if err := errors.Join(group.hold(), group.open()); err != nil {
		return nil, errors.Join(err, group.remove())
	}
	return group, nil
}

// write writes the setting of a group.
func (s setting) write(dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, s.file), os.O_WRONLY, 0)
	if s.optional && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(strconv.FormatInt(s.value, 10))
	return errors.Join(err, file.Close())
}

// removeLeft removes the groups of programs that have ended, with what still runs in them: a program that was killed
// has ended nothing.
func removeLeft(dir string) {
	groups, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, group := range groups {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(group), prefix), "-")
		if _, err := os.Stat("/proc/" + id); !errors.Is(err, os.ErrNotExist) || isHeld(group) {
			continue
		}
		killMembers(group)
		_ = removeSoon(group)
	}
}
