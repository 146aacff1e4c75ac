// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// oci starts functions by a runtime of the Open Container Initiative.
//
// A runtime wants a bundle, a directory for its state and a name for each container, and what it starts
// outlives it. So unshare starts it in a user, mount and pid namespace, as the first process: with it,
// everything in the namespace ends. A shell mounts a file system in memory there, which holds bundle and state:
// each sandbox has its own, and the kernel removes it with the last process, however that ends.
type oci struct {
	cfg                   Config
	path                  string
	unshare, shell, mount string
	// scratch is a directory of every machine that the runtime does not need, to mount on.
	scratch string
	// before is what the shell does first.
	before string
	// arguments are the runtime's, before its command; offline are those for functions without network.
	arguments, offline, online []string
	// messages are how the runtime's own messages begin.
	messages []string
	seccomp  json.RawMessage
}

// The shell's script: "$0" is the scratch directory, and the arguments are the path of mount, the configuration,
// and the runtime's command, which a name completes: sockets of runsc have it, and are not of the mount namespace.
// A trial has the machine's own files, which a runtime takes only as a mount of their own.
const (
	prepare = `"$1" -t tmpfs -o mode=700,size=16m sandbox "$0" && `
	// runc makes a control group of version 2 beside the one that it is started in, outside of its limits, unless it
	// cannot. The mount keeps its other flags.
	readOnlyGroups = `if [ -e ` + cgroupDirectory + `/cgroup.procs ]; then ` +
		`"$1" --bind ` + cgroupDirectory + ` ` + cgroupDirectory + ` && ` +
		`"$1" -o remount,bind,ro,nosuid,nodev,noexec ` + cgroupDirectory + `; fi && `
	prepareTrial = `mkdir "$0/root" && "$1" --rbind / "$0/root" && `
	become       = `printf %s "$2" >"$0/config.json" && shift 2 && ` +
		`read -r id </proc/sys/kernel/random/uuid && exec "$@" "$id"`
)

func (o *oci) command(fn Function) (fnproc.Command, *fnproc.StartError) {
	script := o.before + prepare + become
	if fn.Root == "/" {
		script = o.before + prepare + prepareTrial + become
		fn.Root = filepath.Join(o.scratch, "root")
	}
	args := []string{
		"--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--",
		o.shell, "-c", script, o.scratch, o.mount, string(o.config(fn)),
		o.path,
	}
	args = append(args, o.arguments...)
	if fn.Network {
		args = append(args, o.online...)
	} else {
		args = append(args, o.offline...)
	}
	args = append(args, "--root", filepath.Join(o.scratch, "state"), "run", "--bundle", o.scratch)
	messages := slices.Concat(o.messages, []string{"unshare: ", "mount: ", o.scratch + ": "}) // the shell has its "$0"
	return fnproc.Command{Path: o.unshare, Args: args, Launch: &fnproc.Launch{Messages: messages}}, nil
}

// object is an object of the configuration, whose fields are those of the runtime specification.
type object = map[string]any

// config returns the configuration of a function's container, in JSON. Its user is 0 of the namespace,
// which is the only one there and has no capability.
func (o *oci) config(fn Function) []byte {
	root := fn.Root
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved // runc wants that
	}
	namespaces := []object{{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}, {"type": "cgroup"}}
	mounts := o.mounts()
	if fn.Network {
		for _, file := range networkFiles {
			if _, err := os.Stat(file); err == nil {
				mounts = append(mounts, bindOf(file))
			}
		}
	} else {
		namespaces = append(namespaces, object{"type": "network"})
	}
	content, _ := json.Marshal(object{ // of strings and numbers: it cannot fail
		"ociVersion": "1.0.2",
		"hostname":   hostname,
		"root":       object{"path": root, "readonly": true},
		"process": object{
			"args": fn.Program, "env": fn.environment(), "cwd": fn.Dir, "user": object{"uid": 0, "gid": 0},
			"noNewPrivileges": true, "rlimits": o.limits(), "oomScoreAdj": confine.KillFirst,
			"capabilities": object{
				"bounding": none, "effective": none, "permitted": none, "inheritable": none, "ambient": none,
			},
		},
		"mounts": mounts,
		"linux": object{
			"namespaces": namespaces, "seccomp": o.seccomp,
			"maskedPaths": []string{
				"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/scsi",
				"/proc/timer_list", "/proc/sched_debug",
			},
			"readonlyPaths": []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	})
	return content
}

// none is no capability.
var none = []string{}

// maxTempFiles bounds the files in each of /tmp and /dev/shm: the kernel keeps about a kilobyte of memory for each.
const maxTempFiles = 100_000

func (o *oci) mounts() []object {
	tmpfs := func(path string, size int64, options ...string) object {
		return object{
			"destination": path, "type": "tmpfs", "source": "tmpfs",
			"options": append(options, "nosuid", "nodev", "size="+number(size), "nr_inodes="+number(maxTempFiles)),
		}
	}
	return []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{
			"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
			"options": []string{"nosuid", "mode=755", "size=65536", "ro"},
		},
		tmpfs("/dev/shm", o.cfg.MaxTemp, "mode=1777"),
		tmpfs("/tmp", o.cfg.MaxTemp, "mode=1777"),
	}
}

func bindOf(file string) object {
	return object{
		"destination": file, "type": "bind", "source": file, "options": []string{"bind", "ro", "nosuid", "nodev", "noexec"},
	}
}

// limits returns the resource limits, which the runtime sets before the function runs.
func (o *oci) limits() []object {
	limit := func(kind string, value int64) object {
		return object{"type": "RLIMIT_" + kind, "soft": value, "hard": value}
	}
	return []object{
		limit("CORE", confine.MaxCore), limit("NOFILE", confine.MaxFiles), limit("FSIZE", o.cfg.MaxTemp),
		limit("NPROC", o.cfg.MaxProcesses), limit("DATA", o.cfg.MaxMemory),
	}
}
