// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempts contains actions by name. Each action must fail in a confined function, except log-packets, which hangs. The
// argument of an action is its target, such as a path or a process. An action does no harm even if it succeeds.
var attempts = map[string]func(target string) error{
	"read":       func(path string) error { _, err := os.ReadFile(path); return err },
	"list":       func(path string) error { _, err := os.ReadDir(path); return err },
	"write":      func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
	"remove":     os.Remove,
	"truncate":   func(path string) error { return os.Truncate(path, 0) },
	"link":       func(path string) error { return os.Link(path, filepath.Join(os.TempDir(), "link")) },
	"device":     makeDevice,
	"join-group": joinGroup,
	"fork":       forkSelf,
	"kill":       onPID(func(pid int) error { return syscall.Kill(pid, syscall.SIGURG) }),
	"tgkill":     onPID(func(pid int) error { return callKernel(syscall.SYS_TGKILL, pid, pid, int(syscall.SIGURG)) }),
	"tkill":      onPID(func(pid int) error { return callKernel(syscall.SYS_TKILL, pid, int(syscall.SIGURG)) }),
	"set-owner":  onPID(setOwner),
	"set-owner-ex": onPID(func(pid int) error {
		owner := [2]int32{1, int32(pid)}
		return onPipe(fSetOwnerEx, addressOf(&owner))
	}),
	"set-signal": func(string) error { return onPipe(fSetSignal, int(syscall.SIGURG)) },
	"watch":      watchNames,
	"notify":     notifyNames,
	"inotify":    func(string) error { return callKernel(syscall.SYS_INOTIFY_INIT1, 0) },
	"aio": func(string) error {
		var requests uintptr
		return callKernel(syscall.SYS_IO_SETUP, 1, addressOf(&requests))
	},
	"lease": inTempFile(func(fd int) error { return callKernel(syscall.SYS_FCNTL, fd, unix.F_SETLEASE, syscall.F_UNLCK) }),
	"xattr": inTempFile(func(fd int) error { return unix.Fsetxattr(fd, "user.left", []byte("x"), 0) }),
	"flags": inTempFile(func(fd int) error {
		var none int
		return callKernel(syscall.SYS_IOCTL, fd, fsSetFlags, addressOf(&none))
	}),
	"file-attributes": inTempFile(func(fd int) error {
		var none [24]byte
		return callKernel(fileSetAttributes, fd, addressOf(&[]byte("\x00")[0]), addressOf(&none), len(none),
			unix.AT_EMPTY_PATH)
	}),
	"new-call": func(string) error { return callKernel(newCall) },
	"set-uid":  inTempFile(func(fd int) error { return syscall.Fchmod(fd, 0o6755) }),
	"create-set-uid": func(string) error {
		fd, err := syscall.Open(filepath.Join(os.TempDir(), "program"), syscall.O_CREAT|syscall.O_WRONLY, 0o4755)
		if err != nil {
			return err
		}
		return syscall.Close(fd)
	},
	"pair":       func(string) error { _, err := syscall.Socketpair(unix.AF_TIPC, syscall.SOCK_STREAM, 0); return err },
	"chmod":      func(path string) error { return os.Chmod(path, 0) },
	"attach":     func(string) error { return callKernel(syscall.SYS_SHMAT, 1<<30, 0, 0) },
	"queue":      func(string) error { return callKernel(unix.SYS_MQ_UNLINK, addressOf(&[]byte("x\x00")[0])) },
	"perf":       func(string) error { return callKernel(unix.SYS_PERF_EVENT_OPEN, 0, 0, -1, -1, 0) },
	"userfault":  func(string) error { return callKernel(unix.SYS_USERFAULTFD, 1) },
	"bpf":        func(string) error { return callKernel(unix.SYS_BPF, -1, 0, 0) },
	"type":       func(string) error { return callKernel(syscall.SYS_IOCTL, 0, unix.TIOCSTI, 0) },
	"prlimit":    onPID(askLimit),
	"renice":     onPID(func(pid int) error { return syscall.Setpriority(syscall.PRIO_PROCESS, pid, 19) }),
	"renice-all": func(string) error { return syscall.Setpriority(syscall.PRIO_USER, noUser, 19) },
	"affinity": onPID(func(pid int) error {
		var all uint64 = 1
		return callKernel(syscall.SYS_SCHED_SETAFFINITY, pid, 8, addressOf(&all))
	}),
	"ptrace":  onPID(func(pid int) error { return callKernel(syscall.SYS_PTRACE, seize, pid, 1) }),
	"vm-read": onPID(readMemory),
	"socket": func(address string) error {
		network, to, _ := strings.Cut(address, ",")
		return dialTarget(network, to)
	},
	"listen":      func(address string) error { l, err := net.Listen("tcp", address); closeIf(l, err); return err },
	"make-file":   makeFile,
	"empty-files": makeEmptyFiles,
	"packets":     func(string) error { _, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, 0); return err },
	"protocol": func(string) error {
		_, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, syscall.IPPROTO_SCTP)
		return err
	},
	"datagrams": func(string) error { _, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0); return err },
	"unshare":   func(string) error { return syscall.Unshare(syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS) },
	"clone":     cloneNamespace,
	"mount":     func(path string) error { return syscall.Mount("none", path, "tmpfs", 0, "") },
	"chroot":    syscall.Chroot,
	"io-uring": func(string) error {
		var p [120]byte
		return callKernel(unix.SYS_IO_URING_SETUP, 1, int(uintptr(unsafe.Pointer(&p))))
	},
	"shm":      func(string) error { return callKernel(syscall.SYS_SHMGET, 1<<30, 0, 0) },
	"keyring":  func(string) error { return callKernel(syscall.SYS_KEYCTL, 0, -3, 0) },
	"allocate": inTempFile(func(fd int) error { return syscall.Fallocate(fd, 0, 0, 1<<20) }),
	"reserve": inTempFile(func(fd int) error {
		space := [6]int64{2: 1 << 20} // kernel's struct space_resv
		return callKernel(syscall.SYS_IOCTL, fd, reserveSpace, addressOf(&space))
	}),
	"core": func(string) error {
		return syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20})
	},
	"descriptors": inheritDescriptors,
	"log-packets": logPackets,
	"reopen":      func(path string) error { f, err := os.OpenFile(path, os.O_RDWR, 0); closeIf(f, err); return err },
	"i386":        runForeign,
	"x32":         func(string) error { return callKernel(x32Getpid) },
}

// The ioctl requests FS_IOC_RESVSP and FS_IOC_SETFLAGS.
const (
	reserveSpace = 0x40305828
	fsSetFlags   = 0x40086602
)

// Numbers of system calls that golang.org/x/sys does not define. No kernel uses the number newCall yet. Tests use
// newCall as an unknown system call.
const (
	fileSetAttributes = 469
	newCall           = 500
)

// inTempFile returns an action that calls attempt with the descriptor of an empty file.
func inTempFile(attempt func(fd int) error) func(string) error {
	return func(string) error {
		f, err := os.CreateTemp("", "attempt")
		exitOnError(err)
		defer func() { _ = os.Remove(f.Name()) }()
		return errors.Join(attempt(int(f.Fd())), f.Close())
	}
}

// seize is the ptrace request PTRACE_SEIZE. Tests pass an invalid argument, so that the request never traces a
// process.
const seize = 0x4206

// noUser is the id of a user who has no processes.
const noUser = 1 << 30

// x32Getpid is the number of the system call getpid in the x32 ABI, for amd64 programs with 32-bit pointers.
const x32Getpid = 0x40000000 + 39

func onPID(attempt func(pid int) error) func(string) error {
	return func(target string) error {
		if target == "parent" {
			return attempt(os.Getppid())
		}
		return attempt(parseInt(target))
	}
}

// callKernel makes a system call.
func callKernel(number int, args ...int) error {
	var a [6]uintptr
	for i, arg := range args {
		a[i] = uintptr(arg)
	}
	if _, _, errno := syscall.Syscall6(uintptr(number), a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func addressOf[T any](value *T) int { return int(uintptr(unsafe.Pointer(value))) }

// makeEmptyFiles creates count empty files in the temporary directory.
func makeEmptyFiles(count string) error {
	for i := range parseInt(count) {
		fd, err := syscall.Open(filepath.Join(os.TempDir(), strconv.Itoa(i)), syscall.O_CREAT|syscall.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_ = syscall.Close(fd)
	}
	return nil
}

// makeFile creates a file in the temporary directory. It fails if the same file of an earlier evaluation still exists.
func makeFile(string) error {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "left"), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	return err
}

func makeDevice(string) error {
	return syscall.Mknod(filepath.Join(os.TempDir(), "null"), syscall.S_IFCHR|0o600, 1<<8|3)
}

// forkSelf starts count child processes that hang.
func forkSelf(count string) error {
	exe, err := os.Executable()
	exitOnError(err)
	for range parseInt(count) {
		if _, err := os.StartProcess(exe, []string{exe, "hang"}, &os.ProcAttr{}); err != nil {
			return err
		}
	}
	return nil
}

// joinGroup starts a child process in the process group of another process, whose id is the argument target.
func joinGroup(target string) error {
	group, err := syscall.Getpgid(parseInt(target))
	exitOnError(err)
	exe, err := os.Executable()
	exitOnError(err)
	child, err := os.StartProcess(exe, []string{exe, "empty"},
		&os.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true, Pgid: group}})
	if err == nil {
		_, err = child.Wait()
	}
	return err
}

// setOwner makes the kernel send a signal to the process with the id pid when a pipe becomes readable (F_SETOWN).
func setOwner(pid int) error {
	const setOwner = 8
	return onPipe(setOwner, pid)
}

// The fcntl commands F_SETOWN_EX and F_SETSIG, which configure signals about a file.
const (
	fSetOwnerEx = 15
	fSetSignal  = 10
)

// onPipe calls fcntl on a pipe.
func onPipe(command, argument int) error {
	r, w, err := os.Pipe()
	exitOnError(err)
	defer func() { _, _ = r.Close(), w.Close() }()
	return callKernel(syscall.SYS_FCNTL, int(r.Fd()), command, argument)
}

// watchNames requests events that contain the names of new files in a directory (inotify).
func watchNames(path string) error {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(fd) }()
	_, err = syscall.InotifyAddWatch(fd, path, syscall.IN_CREATE)
	return err
}

// notifyNames requests a signal for each new file in the temporary directory (F_NOTIFY).
func notifyNames(string) error {
	dir, err := os.Open(os.TempDir())
	exitOnError(err)
	defer func() { _ = dir.Close() }()
	const created = 4 // DN_CREATE
	return callKernel(syscall.SYS_FCNTL, int(dir.Fd()), unix.F_NOTIFY, created)
}

// askLimit tries to read a limit of another process. This must fail, because the same system call, prlimit, can also
// change limits.
func askLimit(pid int) error {
	var limit syscall.Rlimit
	return callKernel(syscall.SYS_PRLIMIT64, pid, syscall.RLIMIT_NOFILE, 0, addressOf(&limit))
}

// readMemory tries to read a byte of another process's memory. The address does not matter, because the kernel checks
// the permission first.
func readMemory(pid int) error {
	var b byte
	local := syscall.Iovec{Base: &b, Len: 1}
	return callKernel(unix.SYS_PROCESS_VM_READV, pid, addressOf(&local), 1, addressOf(&local), 1)
}

func dialTarget(network, to string) error {
	conn, err := net.Dial(network, to)
	if err == nil {
		_, err = conn.Write([]byte("x"))
		_ = conn.Close()
	}
	return err
}

// logPackets starts a child in another session, and hangs. The child switches its log to packets (O_DIRECT), and logs
// as fast as it can. When its parent is killed, the child stops logging and hangs. The argument parent is the parent's
// pid in the child, and empty in the parent.
func logPackets(parent string) error {
	if parent == "" {
		startSelf("try=log-packets:"+strconv.Itoa(os.Getpid()), syscall.SysProcAttr{Setsid: true})
		hang("")
		return nil
	}
	if err := callKernel(syscall.SYS_FCNTL, syscall.Stderr, syscall.F_SETFL, syscall.O_DIRECT); err != nil {
		return err
	}
	_ = callKernel(syscall.SYS_FCNTL, syscall.Stderr, unix.F_SETPIPE_SZ, 1<<20) // fails above a limit per user
	packet := bytes.Repeat([]byte("packet! "), 500)
	for pid := parseInt(parent); os.Getppid() == pid; {
		if _, err := syscall.Write(syscall.Stderr, packet); err != nil {
			return err
		}
	}
	hang("")
	return nil
}

// inheritDescriptors returns an error that lists the descriptors that this process inherited, except standard input,
// output and error.
func inheritDescriptors(string) error {
	var inherited []string
	for fd := 3; fd < 256; fd++ {
		file, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		own := strings.HasPrefix(file, "anon_inode:[event") || strings.HasPrefix(file, "/sys/fs/cgroup/")
		if err == nil && !own {
			inherited = append(inherited, file)
		}
	}
	if inherited == nil {
		return nil
	}
	return errors.New("inherited " + strings.Join(inherited, ", "))
}

func closeIf(l io.Closer, err error) {
	if err == nil {
		_ = l.Close()
	}
}

func cloneNamespace(string) error {
	exe, err := os.Executable()
	exitOnError(err)
	child, err := os.StartProcess(exe, []string{exe, "empty"},
		&os.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}})
	if err == nil {
		_, err = child.Wait()
	}
	return err
}

// runForeign tries to evade a filter of system calls. It runs a 64-bit program that calls exit(0) like a 32-bit
// program. 32-bit programs use another number for this system call.
func runForeign(string) error {
	if runtime.GOARCH != "amd64" {
		return syscall.ENOSYS // these numbers exist only on amd64
	}
	path := filepath.Join(os.TempDir(), "foreign")
	exitOnError(os.WriteFile(path, foreignProgram(), 0o700))
	child, err := os.StartProcess(path, []string{path}, &os.ProcAttr{})
	exitOnError(err)
	state, err := child.Wait()
	exitOnError(err)
	if !state.Success() {
		return errors.New(state.String())
	}
	return nil
}

// foreignProgram returns a 64-bit executable that exits with a 32-bit system call. Its code is "mov eax, 1; xor ebx,
// ebx; int 0x80".
func foreignProgram() []byte {
	const base, headers = 0x400000, 64 + 56
	code := []byte{0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80}
	le := binary.LittleEndian
	elf := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	elf = le.AppendUint16(elf, 2)  // type: executable
	elf = le.AppendUint16(elf, 62) // machine: amd64
	elf = le.AppendUint32(elf, 1)
	elf = le.AppendUint64(elf, base+headers) // entry point
	elf = le.AppendUint64(elf, 64)           // offset of the program header
	elf = le.AppendUint64(elf, 0)
	elf = le.AppendUint32(elf, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} { // sizes and counts of headers
		elf = le.AppendUint16(elf, v)
	}
	elf = le.AppendUint32(elf, 1) // type: loadable
	elf = le.AppendUint32(elf, 5) // flags: read and execute
	size := uint64(headers + len(code))
	for _, v := range []uint64{0, base, base, size, size, 0x1000} {
		elf = le.AppendUint64(elf, v)
	}
	return append(elf, code...)
}

// restoreDefault replaces the Go runtime's handler for a signal with the kernel's default action.
func restoreDefault(sig int) {
	var byDefault [32]byte // the kernel's struct sigaction; zero means SIG_DFL
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION,
		uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
}
