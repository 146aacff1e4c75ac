// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// unified is the key of the hierarchy of version 2.
const unified = ""

// parseMounts returns where hierarchies are mounted, by controller, from a mountinfo file.
func parseMounts(content string) map[string]mount {
	mounts := map[string]mount{}
	for line := range strings.SplitSeq(content, "\n") {
		place, system, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(place), strings.Fields(system)
		if len(fields) < 6 || len(kind) < 3 {
			continue
		}
		at := mount{root: fields[3], dir: fields[4]}
		switch kind[0] {
		case "cgroup2":
			mounts[unified] = at
		case "cgroup":
			for controller := range strings.SplitSeq(kind[2], ",") {
				mounts[controller] = at
			}
		}
	}
	return mounts
}

// mount is where a part of a hierarchy, from root on, is mounted.
type mount struct{ root, dir string }

// parseOwn returns the paths of this program's groups, by controller, from its cgroup file.
func parseOwn(content string) map[string]string {
	own := map[string]string{}
	for line := range strings.SplitSeq(content, "\n") {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) < 3 {
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			own[controller] = fields[2]
		}
	}
	return own
}

// path returns the directory of a group.
func (m mount) path(group string) string {
	inside, err := filepath.Rel(m.root, group)
	if err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
		inside = "." // the group is not below what is mounted
	}
	return filepath.Join(m.dir, inside)
}

// find returns the hierarchies that limit memory and processes together: version 2 if it can, else version 1.
func find(
	mounts map[string]mount, own map[string]string, limits Limits, mayUse func(top, dir string) bool,
) ([]hierarchy, int, error) {
	if m, ok := mounts[unified]; ok {
		if dir, ok := nearest(m.dir, m.path(own[unified])); ok && mayUse(m.dir, dir) {
			settings := []setting{{file: "pids.max", value: limits.Processes}}
			if limits.Memory > 0 {
				settings = append(settings, setting{file: "memory.max", value: limits.Memory},
					setting{file: "memory.swap.max", value: 0, optional: true})
			}
			return []hierarchy{{dir, settings, "memory.events"}}, 2, nil
		}
	}
	memory, ok := mounts["memory"]
	pids, both := mounts["pids"]
	if !ok || !both {
		return nil, 0, errors.New("find control groups: this program may make none that limit memory and processes; " +
			"a systemd unit needs Delegate=yes, and a terminal systemd-run --user --scope")
	}
	first := hierarchy{dir: memory.path(own["memory"]), events: "memory.oom_control"}
	if limits.Memory > 0 {
		first.settings = []setting{
			{file: "memory.limit_in_bytes", value: limits.Memory},
			{file: "memory.memsw.limit_in_bytes", value: limits.Memory, optional: true}, // with swap
		}
	}
	second := hierarchy{
		dir: pids.path(own["pids"]), settings: []setting{{file: "pids.max", value: limits.Processes}},
	}
	return []hierarchy{first, second}, 1, nil
}

// nearest returns the nearest directory, from this program's group up, whose children have both controllers. A group
// with processes has no such children: usually it is the one above.
func nearest(top, dir string) (string, bool) {
	for ; strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return "", false
		}
		controllers := strings.Fields(string(content))
		if !slices.Contains(controllers, "memory") || !slices.Contains(controllers, "pids") {
			continue
		}
		return dir, true
	}
	return "", false
}

// mayMake reports whether this program may make a group in a directory and move processes from its own into it.
func mayMake(dir string) bool {
	processes, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	return processes.Close() == nil
}
