// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Answers of the filter. "Not implemented" is for calls whose callers know another way.
var (
	forbidden      = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	notImplemented = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	unsupported    = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)}
)

// rules are what the filter answers, by the names of calls; no cases are all.
type rules map[string][]match

// always are the calls that no function needs, by what they would be good for.
var always = []string{
	// Other processes.
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp",
	"pidfd_getfd", "migrate_pages",
	// Memory and queues that outlive processes, and are shared by all of a user.
	"shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl",
	"mq_open", "mq_unlink",
	// Names of files in directories of others, which Landlock does not hide from it.
	"inotify_add_watch",
	// Parts of the kernel with a history of holes.
	"bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "memfd_secret", "fanotify_init",
	// File systems.
	"mount", "umount2", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick",
	"mount_setattr", "pivot_root", "chroot", "setns", "open_by_handle_at", "quotactl", "quotactl_fd",
	// The machine.
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
	"acct", "syslog", "vhangup", "settimeofday", "clock_settime", "sethostname", "setdomainname", "iopl", "ioperm",
}

// otherwise are the calls that programs try first, and whose effects cannot be filtered.
var otherwise = []string{"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"}

// offline are calls on sockets that functions without network have no use for. Pairs of
// sockets remain, by which programs talk to what they start.
var offline = []string{"socket", "connect", "bind", "listen", "accept", "accept4"}

// namespaces are the flags of clone and unshare that make namespaces, and the one with
// which the child would be ours.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// calls returns the calls that are not allowed on this architecture, whose names and
// numbers the library knows: constants of golang.org/x/sys differ between architectures.
func (k kernel) calls(network bool) ([]call, error) {
	here, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	var calls []call
	for name, cases := range k.forbidden(network) {
		if number, ok := here.SyscallNames[name]; ok {
			calls = append(calls, call{uint32(number), forbidden, cases}) //nolint:gosec // numbers of calls are small
		}
	}
	for _, name := range k.notImplemented() {
		if number, ok := here.SyscallNames[name]; ok {
			calls = append(calls, call{uint32(number), notImplemented, nil}) //nolint:gosec // numbers of calls are small
		}
	}
	if number, ok := here.SyscallNames["fallocate"]; ok {
		// Programs write instead, as where the file system does not support it. The case is of
		// any file.
		calls = append(calls, call{uint32(number), unsupported, []match{{{0, bpf.JumpNotEqual, noFile}}}}) //nolint:gosec // numbers of calls are small
	}
	return calls, nil
}

// noFile is no descriptor of a file.
const noFile = 1<<32 - 1

// forbidden returns the rules for this kernel.
func (k kernel) forbidden(network bool) rules {
	r := othersProcesses()
	for _, name := range always {
		r[name] = nil
	}
	if network {
		r["socket"] = otherFamilies()
	} else {
		for _, name := range offline {
			r[name] = nil
		}
		// A pair of datagram sockets could be used to send to any other socket.
		r["socketpair"] = []match{{{1, bpf.JumpBitsSet, unix.SOCK_DGRAM}}}
	}
	if k.abi < abiScopes {
		addSignals(r)
	}
	if k.abi < abiTruncate {
		r["truncate"] = nil
	}
	return r
}

func (k kernel) notImplemented() []string {
	if k.abi < abiScopes {
		return append(slices.Clone(otherwise), "pidfd_send_signal")
	}
	return otherwise
}

// othersProcesses returns rules for calls that a function may make about itself, but not
// about others.
func othersProcesses() rules {
	r := rules{
		"setpriority": {{{0, bpf.JumpGreaterOrEqual, unix.PRIO_USER}}, {{1, bpf.JumpNotEqual, 0}}},
		"ioprio_set":  {{{0, bpf.JumpGreaterOrEqual, 3}}, {{1, bpf.JumpNotEqual, 0}}}, // 3 is IOPRIO_WHO_USER
		"clone":       {{{0, bpf.JumpBitsSet, namespaces | unix.CLONE_PARENT}}},
		"unshare":     {{{0, bpf.JumpBitsSet, namespaces | unix.CLONE_NEWTIME}}},
		"personality": {{{0, bpf.JumpNotEqual, 0}, {0, bpf.JumpNotEqual, 0xffffffff}}},
	}
	for _, name := range []string{"prlimit64", "sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity", "move_pages"} {
		r[name] = []match{{{0, bpf.JumpNotEqual, 0}}}
	}
	for _, command := range []uint32{unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG} {
		r["fcntl"] = append(r["fcntl"], match{{1, bpf.JumpEqual, command}})
	}
	const fioSetOwn, siocSetGroup = 0x8901, 0x8902
	// Older ways to allocate space.
	const fsReserve, fsReserve64, fsZero = 0x40305828, 0x4030582a, 0x40305839
	for _, request := range []uint32{fioSetOwn, siocSetGroup, unix.TIOCSTI, unix.TIOCLINUX, fsReserve, fsReserve64, fsZero} {
		r["ioctl"] = append(r["ioctl"], match{{1, bpf.JumpEqual, request}})
	}
	return r
}

// otherFamilies matches sockets that programs with a network do not need: all but those of
// the network, local ones, and what a resolver asks the kernel by.
func otherFamilies() []match {
	var others match
	for _, family := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
		others = append(others, condition{0, bpf.JumpNotEqual, family})
	}
	return []match{others, {{0, bpf.JumpEqual, unix.AF_NETLINK}, {2, bpf.JumpNotEqual, unix.NETLINK_ROUTE}}}
}

// addSignals adds rules for kernels without Landlock's signal scope. A number says nothing
// about whose process or thread it is, so only a process's own threads (tgkill, of which the
// kernel checks that they belong to the first number) and its group are left.
func addSignals(r rules) {
	ours := uint32(unix.Getpid()) //nolint:gosec // a pid is positive
	r["kill"] = []match{{{0, bpf.JumpNotEqual, 0}}}
	r["tkill"], r["rt_sigqueueinfo"] = nil, nil
	r["tgkill"] = []match{{{0, bpf.JumpEqual, ours}}}
	r["rt_tgsigqueueinfo"] = r["tgkill"]
}
