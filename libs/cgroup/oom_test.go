// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
)

// group is a control group as the kernel shows it.
type group struct{ counter, before, after, limitFile, limit string }

var (
	v2 = group{
		"memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0\n",
		"low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 0\n", "memory.max", "536870912\n",
	}
	v1 = group{
		"memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
		"oom_kill_disable 0\nunder_oom 0\noom_kill 6\n", "memory/memory.limit_in_bytes", "536870912\n",
	}
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEachKillExplainsOneEnd(t *testing.T) {
	for reason, g := range map[string]group{"version 2": v2, "version 1": v1} {
		t.Run(reason, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, g.counter), g.before)
			write(t, filepath.Join(root, g.limitFile), g.limit)
			w := cgroup.NewKills(root)
			if said := w.Explain(); said != "" {
				t.Errorf("a kill before the start explains an end: %s", said)
			}
			write(t, filepath.Join(root, g.counter), g.after)
			for range 2 {
				if said := w.Explain(); !strings.HasPrefix(said, "out of memory: its container may use 512 MiB") {
					t.Errorf("a kill is explained by %q", said)
				}
			}
			if said := w.Explain(); said != "" {
				t.Errorf("a third end is explained by two kills: %s", said)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	for reason, limit := range map[string]string{"no limit in version 2": "max\n", "no file": ""} {
		root := t.TempDir()
		write(t, filepath.Join(root, v2.counter), v2.before)
		if limit != "" {
			write(t, filepath.Join(root, v2.limitFile), limit)
		}
		w := cgroup.NewKills(root)
		write(t, filepath.Join(root, v2.counter), v2.after)
		if said := w.Explain(); said == "" || strings.Contains(said, "MiB") {
			t.Errorf("%s: it is explained by %q", reason, said)
		}
	}
}

func TestNothingIsKnown(t *testing.T) {
	for reason, content := range map[string]string{
		"no control group": "", "an old kernel": "oom_kill_disable 0\n", "garbage": "oom_kill many\n",
	} {
		root := t.TempDir()
		if content != "" {
			write(t, filepath.Join(root, v1.counter), content)
		}
		if said := cgroup.NewKills(root).Explain(); said != "" {
			t.Errorf("%s: an end is explained by %q", reason, said)
		}
	}
	var none *cgroup.Kills
	if said := none.Explain(); said != "" {
		t.Errorf("no watch explains an end by %q", said)
	}
}
