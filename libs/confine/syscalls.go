// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Errors that the seccomp filter returns for a forbidden system call. After ENOSYS ("not implemented"), most programs
// use another call instead.
var (
	forbidden      = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	notImplemented = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	unsupported    = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)}
)

// rules maps the names of system calls to forbidden arguments. An empty list forbids the call with all arguments.
type rules map[string][]match

// always lists the system calls that are forbidden regardless of their arguments, because no function needs them.
var always = []string{
	// Calls that read or control other processes.
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp",
	"pidfd_getfd", "migrate_pages",
	// Shared memory, semaphores and message queues of System V, which outlive processes and are visible to all processes
	// of a user.
	"shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl",
	"mq_open", "mq_unlink",
	// File watches (inotify) show the names of files in other functions' directories, which Landlock does not hide.
	// The kernel also limits the number of inotify instances of a user on the whole machine.
	"inotify_add_watch", "inotify_init", "inotify_init1",
	// Calls of kernel subsystems with a history of vulnerabilities.
	"bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "memfd_secret", "fanotify_init",
	// Calls that mount or change file systems.
	"mount", "umount2", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick",
	"mount_setattr", "pivot_root", "chroot", "setns", "open_by_handle_at", "quotactl", "quotactl_fd",
	// Calls that change the whole machine, such as its clock and its kernel modules.
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
	"acct", "syslog", "vhangup", "settimeofday", "clock_settime", "sethostname", "setdomainname", "iopl", "ioperm",
}

// otherwise lists forbidden system calls for which programs have an older alternative. The calls fail with "not
// implemented", so that programs use the alternative. We forbid some of them because a seccomp filter cannot detect
// their effect, and the rest because the kernel limits their use by all programs of the machine together.
var otherwise = []string{"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "openat2"}

// optional lists forbidden system calls that programs can do without. The call fallocate only reserves space. The other
// calls change attributes of files, and these changes would remain after the function has exited.
var optional = []string{
	"fallocate", "setxattr", "lsetxattr", "fsetxattr", "setxattrat",
	"removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr",
}

// recent contains the numbers of system calls that the library go-seccomp-bpf does not contain yet. The numbers are
// the same on all architectures.
var recent = map[string]uint32{"file_getattr": 468, "file_setattr": 469}

// offline lists the socket calls that are forbidden for functions without network. Socket pairs stay allowed,
// because programs use them to communicate with their children.
var offline = []string{"socket", "connect", "bind", "listen", "accept", "accept4"}

// namespaces contains the flags of clone and unshare that create namespaces. Functions must not create any.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// filteredCalls returns the system calls that the filter forbids. It forbids some of them only with certain arguments.
// Network is true for functions that may use the network.
func (k kernel) filteredCalls(network bool) ([]call, error) {
	here, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	var calls []call
	add := func(name string, answer bpf.RetConstant, cases []match) {
		// The numbers are from go-seccomp-bpf, because golang.org/x/sys lacks constants for calls that an architecture
		// does not have.
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
		add(name, unsupported, nil)
	}
	return calls, nil
}

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
	// Datagram socket pairs are forbidden because a datagram socket can send to any other local socket. Families other
	// than AF_UNIX are forbidden because the kernel would load modules for them.
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

// othersProcesses returns rules for system calls that can affect other processes. The rules forbid the calls unless
// their arguments affect only the function's own process.
func othersProcesses() rules {
	r := rules{
		"setpriority": {{{0, bpf.JumpGreaterOrEqual, unix.PRIO_USER}}, {{1, bpf.JumpNotEqual, 0}}},
		"ioprio_set":  {{{0, bpf.JumpGreaterOrEqual, 3}}, {{1, bpf.JumpNotEqual, 0}}}, // 3 is IOPRIO_WHO_USER
		// With CLONE_PARENT, the new process would become a child of the server.
		"clone":       {{{0, bpf.JumpBitsSet, namespaces | unix.CLONE_PARENT}}},
		"unshare":     {{{0, bpf.JumpBitsSet, namespaces | unix.CLONE_NEWTIME}}},
		"personality": {{{0, bpf.JumpNotEqual, 0}, {0, bpf.JumpNotEqual, 0xffffffff}}},
	}
	// Functions must not set the set-user-id bit of a file. If the server runs as root, they could otherwise create
	// programs that run as root. The filter cannot read the mode in a call of openat2, because the mode is in memory.
	// Therefore openat2 fails with "not implemented".
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
	// Commands of fcntl that request signals from the kernel, take a lease on a file (which delays other programs that
	// open the file), or watch a directory with the API that preceded inotify.
	for _, command := range []uint32{unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG, unix.F_SETLEASE, unix.F_NOTIFY} {
		r["fcntl"] = append(r["fcntl"], match{{1, bpf.JumpEqual, command}})
	}
	const fioSetOwn, siocSetGroup = 0x8901, 0x8902
	// Requests of ioctl that allocate space for a file. They are forbidden like fallocate.
	const fsReserve, fsReserve64, fsZero = 0x40305828, 0x4030582a, 0x40305839
	// Requests of ioctl that change the flags of a file. Such flags would remain after the function has exited.
	const fsSetFlags, fsSetAttributes, fsEnableVerity = 0x40086602, 0x401c5820, 0x40806685
	for _, request := range []uint32{
		fioSetOwn, siocSetGroup, unix.TIOCSTI, unix.TIOCLINUX, fsReserve, fsReserve64, fsZero,
		fsSetFlags, fsSetAttributes, fsEnableVerity,
	} {
		r["ioctl"] = append(r["ioctl"], match{{1, bpf.JumpEqual, request}})
	}
	return r
}

// otherSockets matches the sockets that functions do not need. Functions need only the usual network protocols, and the
// netlink sockets with which resolvers query the kernel. Local (AF_UNIX) sockets would be useless, because functions
// cannot reach the sockets of other programs: these are files without a Landlock rule, or have abstract names.
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

// addSignals adds rules for kernels on which Landlock cannot restrict signals. A filter cannot determine the process
// that a pid belongs to, so a process may signal only its own process group. An exception is tgkill, because Go and C
// libraries signal their own threads with it. It is allowed except for signals to this program. A function can
// therefore signal another function if it guesses the number of a thread.
func addSignals(r rules) {
	ours := uint32(unix.Getpid()) //nolint:gosec // a pid is positive
	r["kill"] = []match{{{0, bpf.JumpNotEqual, 0}}}
	r["tkill"], r["rt_sigqueueinfo"] = nil, nil
	r["tgkill"] = []match{{{0, bpf.JumpEqual, ours}}}
	r["rt_tgsigqueueinfo"] = r["tgkill"]
}
