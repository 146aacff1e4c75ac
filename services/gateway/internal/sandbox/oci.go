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

// oci starts functions with a runtime of the Open Container Initiative.
//
// A runtime needs a bundle, a state directory and a name for each container, and the processes that it starts outlive
// it. So unshare starts the runtime as the first process of a user, mount and pid namespace: all processes of the
// namespace exit with it. A shell mounts a file system in memory there, with the bundle and the state: each sandbox
// uses its own, and the kernel removes it with the last process, however that exits.
type oci struct {
	cfg                   Config
	path                  string
	unshare, shell, mount string
	// scratch is a mount point: a directory of every machine that the runtime does not need.
	scratch string
	// before is the first command of the shell.
	before string
	// arguments are the runtime's arguments before its command. offline are the arguments for functions without network.
	arguments, offline, online []string
	// messages are the beginnings of the runtime's own messages.
	messages []string
	seccomp  json.RawMessage
}

// The shell's script. "$0" is the scratch directory. The arguments are the path of mount, the configuration, and the
// runtime's command, which a name completes: the name is part of runsc's sockets, which are not in the mount namespace.
// A trial uses the machine's own files, which a runtime accepts only as a separate mount.
const (
	prepare = `"$1" -t tmpfs -o mode=700,size=16m sandbox "$0" && `
	// runc creates a control group of version 2 next to its own group, outside of the limits, unless it cannot. The mount
	// keeps its other flags.
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
		o.shell, "-c", script, o.scratch, o.mount, string(o.containerConfig(fn)),
		o.path,
	}
	args = append(args, o.arguments...)
	if fn.Network {
		args = append(args, o.online...)
	} else {
		args = append(args, o.offline...)
	}
	args = append(args, "--root", filepath.Join(o.scratch, "state"), "run", "--bundle", o.scratch)
	// The shell's messages begin with "$0".
	messages := slices.Concat(o.messages, []string{"unshare: ", "mount: ", o.scratch + ": "})
	return fnproc.Command{Path: o.unshare, Args: args, Launch: &fnproc.Launch{Messages: messages}}, nil
}

// object is an object of the configuration, with the fields of the runtime specification.
type object = map[string]any

// containerConfig returns the configuration of a function's container, in JSON. The user is 0 in the namespace, which
// contains no other user, and has no capability.
func (o *oci) containerConfig(fn Function) []byte {
	root := fn.Root
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved // runc requires it
	}
	namespaces := []object{{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}, {"type": "cgroup"}}
	mounts := o.containerMounts()
	if fn.Network {
		for _, file := range networkFiles {
			if _, err := os.Stat(file); err == nil {
				mounts = append(mounts, bindOf(file))
			}
		}
	} else {
		namespaces = append(namespaces, object{"type": "network"})
	}
	content, _ := json.Marshal(object{ // strings and numbers can always be encoded
		"ociVersion": "1.0.2",
		"hostname":   hostname,
		"root":       object{"path": root, "readonly": true},
		"process": object{
			"args": fn.Program, "env": fn.mergeEnvironment(), "cwd": fn.Dir, "user": object{"uid": 0, "gid": 0},
			"noNewPrivileges": true, "rlimits": o.resourceLimits(), "oomScoreAdj": confine.KillFirst,
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

// none is an empty set of capabilities.
var none = []string{}

// maxTempFiles limits the files in each of /tmp and /dev/shm: the kernel allocates about a kilobyte for each.
const maxTempFiles = 100_000

func (o *oci) containerMounts() []object {
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

// resourceLimits returns the resource limits that the runtime sets before the function runs.
func (o *oci) resourceLimits() []object {
	limit := func(kind string, value int64) object {
		return object{"type": "RLIMIT_" + kind, "soft": value, "hard": value}
	}
	return []object{
		limit("CORE", confine.MaxCore), limit("NOFILE", confine.MaxFiles), limit("FSIZE", o.cfg.MaxTemp),
		limit("NPROC", o.cfg.MaxProcesses), limit("DATA", o.cfg.MaxMemory),
	}
}
