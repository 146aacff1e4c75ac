// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOCIConfiguration checks what a runtime is told; the gateway's tests run it.
func TestOCIConfiguration(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fn := Function{
		Root: root, Program: []string{"/fn", "a"}, Dir: "/srv", Env: []string{"A=b", "HOME=/h", "=", "c", "A=d"},
	}
	o := &oci{
		cfg: Config{MaxMemory: 1 << 30, MaxTemp: 1 << 20, MaxProcesses: 100}, path: "/bin/runc", scratch: "/sys/kernel",
		arguments: []string{"--x"}, offline: []string{"--off"}, online: []string{"--on"}, seccomp: json.RawMessage(`{}`),
	}
	type named struct {
		Type        string
		Destination string
		Options     []string
		Hard        int64
	}
	arguments := func(fn Function) []string {
		cmd, _ := o.command(fn)
		return cmd.Args
	}
	read := func() (config struct {
		Root    struct{ Path string }
		Process struct {
			Args, Env []string
			Rlimits   []named
		}
		Mounts []named
		Linux  struct{ Namespaces []named }
	},
	) {
		args := arguments(fn)
		i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "{") })
		if err := json.Unmarshal([]byte(args[i]), &config); err != nil {
			t.Fatal(err)
		}
		return config
	}
	network := func(namespaces []named) bool {
		return slices.ContainsFunc(namespaces, func(n named) bool { return n.Type == "network" })
	}
	config := read()
	if want := []string{environment[0], "HOME=/h", "A=d"}; !slices.Equal(config.Process.Env, want) {
		t.Errorf("environment %q, want %q", config.Process.Env, want)
	}
	if config.Root.Path != root || !slices.Equal(config.Process.Args, fn.Program) || !network(config.Linux.Namespaces) {
		t.Errorf("got %+v", config)
	}
	for kind, want := range map[string]int64{"CORE": 1, "NOFILE": 4096, "FSIZE": 1 << 20, "NPROC": 100, "DATA": 1 << 30} {
		isSet := func(l named) bool { return l.Type == "RLIMIT_"+kind && l.Hard == want }
		if !slices.ContainsFunc(config.Process.Rlimits, isSet) {
			t.Errorf("no limit of %s to %d in %v", kind, want, config.Process.Rlimits)
		}
	}
	if args := strings.Join(arguments(fn), " "); !strings.Contains(args, "/bin/runc --x --off --root") {
		t.Errorf("arguments %.300s", args)
	}
	fn.Network = true
	if network(read().Linux.Namespaces) || !slices.Contains(arguments(fn), "--on") {
		t.Error("a function that may use the network has one of its own")
	}
}

// TestOrderOfLaunchers has the order in which FNR_SANDBOX=auto tries launchers.
func TestOrderOfLaunchers(t *testing.T) {
	if got, want := All(), []string{Bubblewrap, Crun, Runc, Runsc, Direct}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKindOfALauncher(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/bwrap": Bubblewrap, "/opt/crun-1.20": Crun, "/usr/sbin/runc": Runc, "/usr/bin/runsc": Runsc,
		"/opt/own": Bubblewrap,
	} {
		if got := kindOf(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}
