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

// oci starts functions with an OCI runtime: crun, runc or runsc. Such a runtime requires a bundle directory and a state
// directory, and does not stop its container when it exits. Therefore we start a shell in new user, mount and pid
// namespaces, with the program unshare. The shell mounts a file system in memory for both directories, and then
// replaces itself with the runtime. When the runtime exits or is killed, the kernel kills all other processes of the
// pid namespace, because the runtime is its first process. The kernel then removes the file system.
type oci struct {
	cfg                   Config
	path                  string
	unshare, shell, mount string
	// scratch is the mount point of the file system in memory. The directory must exist on every machine. The mount hides
	// the directory's content, so the runtime must not need this content.
	scratch string
	// before is a shell command that runs before the mount at scratch. For runc, it makes the control groups read-only. It
	// is empty for other runtimes.
	before string
	// arguments are the runtime's global arguments for all functions. offline and online are additional arguments for
	// functions without and with network access.
	arguments, offline, online []string
	// messages are the beginnings of the runtime's own error messages. They distinguish these errors from the function's
	// output, because both are written to stderr.
	messages []string
	seccomp  json.RawMessage
}

// Parts of the script in which the shell executes the OCI runtime. The script's argument "$0" is the scratch directory,
// "$1" is the path of the program mount, and "$2" is the container's configuration. All other arguments are the
// runtime's command line. The script adds a random container name. runsc needs a unique name, because its sockets are
// not in the mount namespace. prepareTrial is only for the test of a launcher, which uses this machine's root directory
// as the image. It mounts the root directory, because an image must be a separate mount.
const (
	prepare = `"$1" -t tmpfs -o mode=700,size=16m sandbox "$0" && `
	// Mount the control groups read-only if they are of version 2. Otherwise runc would create a new control group next to
	// its current group, and our limits would not apply in the new group. The mount must keep the flags of the existing
	// mount. Therefore the command repeats the options nosuid, nodev and noexec.
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
	// Error messages with these beginnings are not from the function. The shell begins its messages with its argument
	// "$0", the path of the scratch directory.
	messages := slices.Concat(o.messages, []string{"unshare: ", "mount: ", o.scratch + ": "})
	return fnproc.Command{Path: o.unshare, Args: args, Launch: &fnproc.Launch{Messages: messages}}, nil
}

// object is a JSON object in a container's configuration. Its fields are defined by the OCI runtime specification.
type object = map[string]any

// containerConfig returns the OCI configuration of a container, in JSON. The function runs as user 0, because the user
// namespace has no other user. This user is not root on this machine, and has no capabilities in the namespace.
func (o *oci) containerConfig(fn Function) []byte {
	root := fn.Root
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved // runc rejects a root path with links
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
	content, _ := json.Marshal(object{ // cannot fail for strings and numbers
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

// none is an empty set of capabilities. nil would become null in JSON, but the runtime requires [].
var none = []string{}

// maxTempFiles limits the number of files in /tmp, and in /dev/shm. This limit is necessary because each file needs a
// kilobyte of kernel memory, which the size limit of these directories does not count.
const maxTempFiles = 100_000

func (o *oci) containerMounts() []object {
	tmpfs := func(path string, size int64, options ...string) object {
		return object{
			"destination": path, "type": "tmpfs", "source": "tmpfs",
			"options": append(options, "nosuid", "nodev", "size="+formatInt(size), "nr_inodes="+formatInt(maxTempFiles)),
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

// resourceLimits returns the limits of a function's processes in the format of the container's configuration.
func (o *oci) resourceLimits() []object {
	limit := func(kind string, value int64) object {
		return object{"type": "RLIMIT_" + kind, "soft": value, "hard": value}
	}
	return []object{
		limit("CORE", confine.MaxCore), limit("NOFILE", confine.MaxFiles), limit("FSIZE", o.cfg.MaxTemp),
		limit("NPROC", o.cfg.MaxProcesses), limit("DATA", o.cfg.MaxMemory),
	}
}
