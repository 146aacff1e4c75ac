// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Answers of the filter. Callers of "not implemented" calls fall back to other calls.
var (
	forbidden      = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	notImplemented = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	unsupported    = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)}
)

// rules are the answers of the filter by call name; without cases, a rule matches all arguments.
type rules map[string][]match

// always lists calls that no function needs, grouped by purpose.
var always = []string{
	// Other processes.
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp",
	"pidfd_getfd", "migrate_pages",
	// Memory and queues that outlive processes, and are shared by all of a user.
	"shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl",
	"mq_open", "mq_unlink",
	// Names of files in others' directories, which Landlock does not hide. The kernel limits instances per user of the
	// machine.
	"inotify_add_watch", "inotify_init", "inotify_init1",
	// Parts of the kernel with a history of holes.
	"bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "memfd_secret", "fanotify_init",
	// File systems.
	"mount", "umount2", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick",
	"mount_setattr", "pivot_root", "chroot", "setns", "open_by_handle_at", "quotactl", "quotactl_fd",
	// The machine.
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
	"acct", "syslog", "vhangup", "settimeofday", "clock_settime", "sethostname", "setdomainname", "iopl", "ioperm",
}

// otherwise are the calls that programs try first, and whose effects cannot be filtered, or are
// counted for the whole machine.
var otherwise = []string{"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "openat2"}

// optional lists calls that programs can do without: they write the space of files instead of allocating it, and skip
// attributes, which would persist.
var optional = []string{
	"fallocate", "setxattr", "lsetxattr", "fsetxattr", "setxattrat",
	"removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr",
}

// recent lists calls that are missing in the library's table. Their numbers are the same on all architectures.
var recent = map[string]uint32{"file_getattr": 468, "file_setattr": 469}

// offline lists socket calls that functions without network do not need. Socket pairs stay allowed, because programs
// use them to communicate with their children.
var offline = []string{"socket", "connect", "bind", "listen", "accept", "accept4"}

// namespaces are the flags of clone and unshare that make namespaces.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// filteredCalls returns the calls that are not allowed on this architecture.
func (k kernel) filteredCalls(network bool) ([]call, error) {
	here, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	var calls []call
	add := func(name string, answer bpf.RetConstant, cases []match) {
		// The library provides names and numbers: constants of golang.org/x/sys differ between architectures.
		number, ok := here.SyscallNames[name]
		if n, isRecent := recent[name]; isRecent {
			number, ok = int(n), true
		}
		if ok {
			calls = append(calls, call{name, uint32(number), answer, cases}) //nolint:gosec // numbers of calls are small
		}
	}
	for name, cases := range k.forbiddenCalls(network) {
		add(name, forbidden, cases)
	}
	for _, name := range k.notImplemented() {
		add(name, notImplemented, nil)
	}
	for _, name := range optional {
		add(name, unsupported, anyArguments)
	}
	return calls, nil
}

// anyArguments are cases that together match all arguments.
var anyArguments = []match{{{0, bpf.JumpNotEqual, 0}}, {{0, bpf.JumpEqual, 0}}}

// forbiddenCalls returns the rules for this kernel.
func (k kernel) forbiddenCalls(network bool) rules {
	r := othersProcesses()
	for _, name := range always {
		r[name] = nil
	}
	if network {
		r["socket"] = otherSockets()
	} else {
		for _, name := range offline {
			r[name] = nil
		}
	}
	// A pair of datagram sockets could send to any other local socket. For other families than local sockets, the kernel
	// loads modules.
	r["socketpair"] = []match{{{0, bpf.JumpNotEqual, unix.AF_UNIX}}, {{1, bpf.JumpBitsSet, unix.SOCK_DGRAM}}}
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

// othersProcesses returns rules for calls that a function may make only about itself.
func othersProcesses() rules {
	r := rules{
		"setpriority": {{{0, bpf.JumpGreaterOrEqual, unix.PRIO_USER}}, {{1, bpf.JumpNotEqual, 0}}},
		"ioprio_set":  {{{0, bpf.JumpGreaterOrEqual, 3}}, {{1, bpf.JumpNotEqual, 0}}}, // 3 is IOPRIO_WHO_USER
		// With CLONE_PARENT, the child would be the server's.
		"clone":       {{{0, bpf.JumpBitsSet, namespaces | unix.CLONE_PARENT}}},
		"unshare":     {{{0, bpf.JumpBitsSet, namespaces | unix.CLONE_NEWTIME}}},
		"personality": {{{0, bpf.JumpNotEqual, 0}, {0, bpf.JumpNotEqual, 0xffffffff}}},
	}
	// Programs that run as another user than who starts them: where the server is root, a function owns all of root's
	// files. openat2, whose mode is in memory, is not implemented.
	for name, mode := range map[string]uint32{
		"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "open": 2, "openat": 3, "mknod": 1, "mknodat": 2,
	} {
		r[name] = []match{{{mode, bpf.JumpBitsSet, unix.S_ISUID | unix.S_ISGID}}}
	}
	for _, name := range []string{
		"prlimit64", "sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity", "move_pages",
	} {
		r[name] = []match{{{0, bpf.JumpNotEqual, 0}}}
	}
	// Signals by the kernel, leases that delay other programs when they open a file, and the older API to watch a
	// directory.
	for _, command := range []uint32{unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG, unix.F_SETLEASE, unix.F_NOTIFY} {
		r["fcntl"] = append(r["fcntl"], match{{1, bpf.JumpEqual, command}})
	}
	const fioSetOwn, siocSetGroup = 0x8901, 0x8902
	// Older ways to allocate space.
	const fsReserve, fsReserve64, fsZero = 0x40305828, 0x4030582a, 0x40305839
	// Flags of files persist.
	const fsSetFlags, fsSetAttributes, fsEnableVerity = 0x40086602, 0x401c5820, 0x40806685
	for _, request := range []uint32{
		fioSetOwn, siocSetGroup, unix.TIOCSTI, unix.TIOCLINUX, fsReserve, fsReserve64, fsZero,
		fsSetFlags, fsSetAttributes, fsEnableVerity,
	} {
		r["ioctl"] = append(r["ioctl"], match{{1, bpf.JumpEqual, request}})
	}
	return r
}

// otherSockets matches sockets that programs with network do not need: all except network sockets of usual protocols,
// and the sockets that resolvers use to query the kernel. Local sockets of other programs are files without a Landlock
// rule, or names without files.
func otherSockets() []match {
	var families match
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
		families = append(families, condition{0, bpf.JumpNotEqual, family})
	}
	protocols := match{{0, bpf.JumpNotEqual, unix.AF_NETLINK}}
	for _, protocol := range []uint32{
		0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6, unix.IPPROTO_MPTCP,
	} {
		protocols = append(protocols, condition{2, bpf.JumpNotEqual, protocol})
	}
	return []match{families, protocols, {{0, bpf.JumpEqual, unix.AF_NETLINK}, {2, bpf.JumpNotEqual, unix.NETLINK_ROUTE}}}
}

// addSignals adds rules for kernels without Landlock's signal scope. A filter cannot tell the owner of a number. A
// process may signal its group, and use tgkill, by which Go and C libraries signal their own threads, except for this
// program: a function that guesses thread numbers of another function can signal it.
func addSignals(r rules) {
	ours := uint32(unix.Getpid()) //nolint:gosec // a pid is positive
	r["kill"] = []match{{{0, bpf.JumpNotEqual, 0}}}
	r["tkill"], r["rt_sigqueueinfo"] = nil, nil
	r["tgkill"] = []match{{{0, bpf.JumpEqual, ours}}}
	r["rt_tgsigqueueinfo"] = r["tgkill"]
}
