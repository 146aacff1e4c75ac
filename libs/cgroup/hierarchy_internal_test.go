// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mountinfo has the lines of a machine with both versions, whose directories are below TOP.
const mountinfo = `25 1 0:23 / /proc rw,nosuid - proc proc rw
30 25 0:26 / TOP/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
31 25 0:27 / TOP/memory rw,nosuid - cgroup cgroup rw,memory
32 25 0:28 /pod TOP/cpu,pids rw,nosuid - cgroup cgroup rw,cpu,pids
broken
`

// makeDirs makes directories of version 2 below top whose children have these controllers.
func makeDirs(t *testing.T, top string, controllers map[string]string) {
	t.Helper()
	for dir, content := range controllers {
		for name, text := range map[string]string{"cgroup.subtree_control": content, "cgroup.procs": ""} {
			path := filepath.Join(top, dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestHierarchiesAreFound(t *testing.T) {
	const both = "cpu memory pids\n"
	tests := map[string]struct {
		reason      string
		own         string
		controllers map[string]string // of version 2
		mounts      string
		version     int
		dirs        []string
		not         bool // delegated
	}{
		"scope of a user": {
			"a group with processes has no controllers for others, the one above has", "0::/app/run.scope\n",
			map[string]string{"unified": both, "unified/app": both, "unified/app/run.scope": ""},
			mountinfo, 2,
			[]string{"unified/app"},
			false,
		},
		"delegated": {
			"its own children have controllers", "0::/app\n",
			map[string]string{"unified": both, "unified/app": both},
			mountinfo, 2,
			[]string{"unified/app"},
			false,
		},
		"not delegated": {
			"root may write it, and its groups would be outside of its own unit",
			"4:memory:/a\n8:cpu,pids:/pod/b\n0::/x.service\n",
			map[string]string{"unified": both, "unified/x.service": ""},
			mountinfo, 1,
			[]string{"memory/a", "cpu,pids/b"},
			true,
		},
		"version 1": {
			"those of version 2 are not used here", "4:memory:/a\n8:cpu,pids:/pod/b\n0::/\n",
			map[string]string{"unified": "hugetlb\n"},
			mountinfo, 1,
			[]string{"memory/a", "cpu,pids/b"},
			false,
		},
		"outside of the mount": {
			"a container sees its own group as the root", "4:memory:/a\n8:cpu,pids:/other\n",
			nil, mountinfo, 1,
			[]string{"memory/a", "cpu,pids"},
			false,
		},
		"none": {
			"processes could not be limited", "4:memory:/a\n",
			nil, "31 25 0:27 / TOP/m rw - cgroup c memory\n", 0,
			nil, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			makeDirs(t, top, tc.controllers)
			mounts := parseMounts(strings.ReplaceAll(tc.mounts, "TOP", top))
			found, version, err := find(mounts, parseOwn(tc.own), Limits{Memory: 1, Processes: 2},
				func(_, dir string) bool { return mayMake(dir) && !tc.not })
			if version != tc.version || len(found) != len(tc.dirs) || (err == nil) != (tc.version > 0) {
				t.Fatalf("found %+v of version %d, %v: %s", found, version, err, tc.reason)
			}
			for i, dir := range tc.dirs {
				if found[i].dir != filepath.Join(top, dir) {
					t.Errorf("directory %s, want %s: %s", found[i].dir, dir, tc.reason)
				}
			}
		})
	}
}

// TestGroupsOfEndedProgramsAreRemoved leaves those of programs that run.
func TestGroupsOfEndedProgramsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	const ended, running, another = prefix + "999999999-1", prefix + "1-1", "another"
	for _, name := range []string{ended, running, another} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeLeft(dir)
	for name, want := range map[string]bool{ended: false, running: true, another: true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %t", name, err, want)
		}
	}
}
