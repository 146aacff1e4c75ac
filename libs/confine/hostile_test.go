// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Limits of the tests.
const (
	maxTempBytes = 8 << 20
	maxTempFiles = 100
)

// config returns a configuration whose temporary directories go with the test.
func config(t testing.TB) confine.Config {
	t.Helper()
	return confine.Config{
		Level: confine.Require, TempDir: t.TempDir(), MaxTempBytes: maxTempBytes, MaxTempFiles: maxTempFiles,
		Log: slog.New(slog.DiscardHandler),
	}
}

// start returns a Runner that is maintained until it is stopped, which has to be before the
// next one is started: a process has one Reaper.
func start(t testing.TB, cfg confine.Config) (runner *fnproc.Runner, stop func()) {
	t.Helper()
	c, err := confine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	reaper, err := fnproc.NewReaper(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	runner = fnproc.NewRunner(fnproc.Config{Reaper: reaper, Confiner: c})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { runner.Maintain(ctx) })
	return runner, func() {
		cancel()
		running.Wait()
	}
}

func command(t testing.TB, behaviour string) fnproc.Command {
	t.Helper()
	dir := t.TempDir()
	testfn.Install(t, dir, "testfn")
	return fnproc.Command{
		Path:      filepath.Join(dir, "testfn"),
		Args:      []string{behaviour},
		Dir:       "/",
		MaxOutput: 1 << 20,
		MaxLog:    1 << 20,
	}
}

var message = regexp.MustCompile(`- message: "(.*)"`)

// attempt runs a function that attempts something, and returns what came of it.
func attempt(t testing.TB, runner *fnproc.Runner, cmd fnproc.Command) string {
	t.Helper()
	got, err := runner.Run(t.Context(), cmd, []byte("kind: Input\n"))
	if err != nil || got.ExitCode != 0 {
		t.Fatalf("%v, %s, log %q", err, got.Status, got.Log)
	}
	found := message.FindSubmatch(got.Output)
	if found == nil {
		t.Fatalf("no result in %q", got.Output)
	}
	return string(found[1])
}

// targets are what attempts are made on. Abstract is a socket with a name and no file.
type targets struct{ secret, tcp, udp, socket, abstract string }

func newTargets(t testing.TB) targets {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	tcp := servetest.Listen(t)
	udp, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unixSocket, err := lc.Listen(t.Context(), "unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	abstract, err := lc.Listen(t.Context(), "unix", "@"+filepath.Base(filepath.Dir(dir))+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _, _ = tcp.Close(), udp.Close(), unixSocket.Close(), abstract.Close() })
	return targets{
		secret, "tcp," + tcp.Addr().String(), "udp," + udp.LocalAddr().String(),
		"unix," + unixSocket.Addr().String(), "unix," + abstract.Addr().String(),
	}
}

// heldBack are listed in docs/security-tests.md: what a function attempts, by what
// it is held back and so on which kernels, and what the function sees.
func heldBack(to targets) map[string]struct{ reason, attempt, by, want string } {
	const (
		denied    = "permission denied"
		forbidden = "operation not permitted"
		missing   = "function not implemented"
		elsewhere = "operation not supported"
	)
	server := strconv.Itoa(os.Getpid())
	return map[string]struct{ reason, attempt, by, want string }{
		"read a secret":    {"credentials are in files beside functions", "read:" + to.secret, "landlock", denied},
		"list a directory": {"names tell who else is there", "list:" + filepath.Dir(to.secret), "landlock", denied},
		"write a file":     {"nothing persists", "write:" + to.secret, "landlock", denied},
		"truncate a file":  {"nor is anything destroyed", "truncate:" + to.secret, "landlock 3, seccomp", "p"},
		"remove a file":    {"whatever its user may", "remove:" + to.secret, "landlock", denied},
		"link a file":      {"into its own directory", "link:" + to.secret, "landlock", "p"},
		"write to /tmp": {
			"later evaluations find nothing", "write:/tmp/function-runner-test-left",
			"landlock", denied,
		},
		"read the environment": {"of the server", "read:/proc/" + server + "/environ", "landlock", denied},
		"read the memory":      {"of the server", "read:/proc/" + server + "/mem", "landlock", denied},
		"see open files": {
			"of the server, whose pipes are other callers' packages", "list:/proc/" + server + "/fd",
			"landlock", denied,
		},
		"read memory by call": {"of the server", "vm-read:" + server, "seccomp", forbidden},
		"trace":               {"the server", "ptrace:" + server, "seccomp", forbidden},
		"make a device":       {"root could reach the disk by it", "device:", "landlock, capabilities", "p"},
		"join the server's group": {
			"a process there would outlive its evaluation", "join-group:" + server,
			"session", forbidden,
		},
		"signal the server": {"it would end, or stop", "kill:" + server, "landlock 6, seccomp", forbidden},
		"signal its parent": {"another way to say it", "tgkill:" + server, "landlock 6, seccomp", forbidden},
		"signal a thread":   {"and another one", "tkill:" + server, "landlock 6, seccomp", forbidden},
		"have it signalled": {"by the kernel, for a pipe", "set-owner:" + server, "seccomp", forbidden},
		"set another owner": {"of a pipe, the newer way", "set-owner-ex:" + server, "seccomp", forbidden},
		"choose a signal":   {"that the kernel sends for a pipe", "set-signal:", "seccomp", forbidden},
		"watch a directory": {
			"names of others' temporary files", "watch:" + filepath.Dir(to.secret),
			"seccomp", forbidden,
		},
		"watch by signals":        {"the older way", "notify:", "seccomp", forbidden},
		"use up watchers":         {"which all processes of its user share", "inotify:", "seccomp", forbidden},
		"use up asynchronous I/O": {"which the whole machine shares", "aio:", "seccomp", missing},
		"lease a file":            {"programs that open it would wait for it", "lease:", "seccomp", forbidden},
		"mark a file":             {"its attributes persist", "xattr:", "seccomp", elsewhere},
		"flag a file":             {"so do its flags", "flags:", "seccomp", forbidden},
		"set attributes":          {"by the call of Linux 6.17", "file-attributes:", "seccomp", elsewhere},
		"call what is new":        {"no rule has it", "new-call:", "seccomp", missing},
		"make a program set-uid":  {"it would run as the server's user", "set-uid:", "seccomp", forbidden},
		"create a set-uid file":   {"likewise", "create-set-uid:", "seccomp", forbidden},
		"pair other sockets":      {"the kernel would load modules", "pair:", "seccomp", forbidden},
		"attach memory":           {"that another process shares", "attach:", "seccomp", forbidden},
		"remove a queue":          {"of another process", "queue:", "seccomp", forbidden},
		"count events":            {"of the kernel and other processes", "perf:", "seccomp", forbidden},
		"handle page faults":      {"to stop the kernel half-way", "userfault:", "seccomp", forbidden},
		"load a kernel program":   {"it outlives the process", "bpf:", "seccomp", forbidden},
		"type into a terminal":    {"of the program that was started there", "type:", "seccomp", forbidden},
		"lower limits":            {"later evaluations would find no files", "prlimit:" + server, "seccomp", forbidden},
		"renice":                  {"the server", "renice:" + server, "seccomp", forbidden},
		"renice a user":           {"with all its processes", "renice-all:", "seccomp", forbidden},
		"bind to a processor":     {"the server", "affinity:" + server, "seccomp", forbidden},
		"connect by TCP":          {"to ports of the pod", "socket:" + to.tcp, "seccomp", forbidden},
		"send by UDP":             {"to ports of the pod", "socket:" + to.udp, "seccomp", forbidden},
		"connect to a socket":     {"of another program", "socket:" + to.socket, "seccomp", forbidden},
		"connect to a name": {
			"of another program's socket without a file", "socket:" + to.abstract,
			"seccomp", forbidden,
		},
		"listen":            {"as if it were a service", "listen:127.0.0.1:0", "seccomp", forbidden},
		"send datagrams":    {"from a pair of sockets to any other", "datagrams:", "seccomp", forbidden},
		"unshare":           {"namespaces open much of the kernel", "unshare:", "seccomp", forbidden},
		"clone a namespace": {"also by clone", "clone:", "seccomp", forbidden},
		"mount":             {"over files of others", "mount:/not/there", "seccomp", forbidden},
		"change the root":   {"around rules of paths", "chroot:/", "seccomp", forbidden},
		"use io_uring":      {"calls there pass the filter", "io-uring:", "seccomp", missing},
		"share memory":      {"it outlives the process", "shm:", "seccomp", forbidden},
		"use keyrings":      {"they outlive the process", "keyring:", "seccomp", forbidden},
		"allocate space":    {"faster than its temporary directory is checked", "allocate:", "seccomp", elsewhere},
		"reserve space":     {"the older way", "reserve:", "seccomp", forbidden},
		"raise limits":      {"core files would fill the disk", "core:", "limits, capabilities", forbidden},
		"call as i386": {
			"other numbers, which the filter would take for harmless ones", "i386:",
			"seccomp", "signal: bad system call",
		},
		"call as x32": {"likewise", "x32:", "seccomp", missing},
	}
}

// TestHeldBack has a function attempt each, on this kernel and with what older ones have.
func TestHeldBack(t *testing.T) {
	cfg := config(t)
	to := newTargets(t)
	cmd := command(t, "")
	for name, tc := range heldBack(to) {
		t.Run(name, func(t *testing.T) {
			cmd := cmd
			cmd.Args = []string{"try=" + tc.attempt}
			for _, abi := range []int{6, 5, 3, 1} {
				runner, stop := start(t, cfg.WithKernel(abi, true))
				got := attempt(t, runner, cmd)
				stop()
				if !bytes.Contains([]byte(got), []byte(tc.want)) {
					t.Errorf("with Landlock %d: %q, want %q: %s", abi, got, tc.want, tc.reason)
				}
			}
		})
	}
}

// TestNotHeldBackWithout is the other half of the test above: without confinement, the
// attempts come to something else.
func TestNotHeldBackWithout(t *testing.T) {
	to := newTargets(t)
	cmd := command(t, "")
	for name, tc := range heldBack(to) {
		switch name {
		case "join the server's group", "call as x32", "call what is new", "write to /tmp", "change the root":
			continue // held back at every level, or nothing to try without
		}
		cmd.Args = []string{"try=" + tc.attempt}
		if got := attempt(t, fnproc.NewRunner(fnproc.Config{}), cmd); got == tc.want {
			t.Errorf("%s: %q without confinement: the attempt shows nothing", name, got)
		}
	}
}

// TestNeighbours has two functions that run at the same time, of which one looks at the other.
func TestNeighbours(t *testing.T) {
	for _, abi := range []int{6, 1} {
		t.Run(fmt.Sprintf("landlock %d", abi), func(t *testing.T) {
			runner, end := start(t, config(t).WithKernel(abi, true))
			defer end()
			neighbour, cmd := command(t, "hang"), command(t, "")
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _, _ = runner.Run(ctx, neighbour, nil) })
			dir := filepath.Dir(neighbour.Path)
			testfn.AwaitRunning(t, dir, 1)
			pid := strconv.Itoa(testfn.Running(dir)[0])
			attempts := []string{
				"read:" + neighbour.Path, "list:/proc", "list:/proc/" + pid + "/fd",
				"kill:" + pid, "join-group:" + pid, "prlimit:" + pid, "vm-read:" + pid,
			}
			for _, file := range []string{
				"auxv", "cwd/etc/passwd", "environ", "fd/0", "io", "maps", "mem", "numa_maps", "pagemap",
				"root/etc/passwd", "smaps", "stack", "syscall", "task/" + pid + "/environ", "task/" + pid + "/mem",
			} {
				attempts = append(attempts, "read:/proc/"+pid+"/"+file)
			}
			for _, what := range attempts {
				cmd.Args = []string{"try=" + what}
				if got := attempt(t, runner, cmd); !bytes.Contains([]byte(got), []byte("permi")) {
					t.Errorf("%s: %q, want that it is not permitted", what, got)
				}
			}
			stop()
			running.Wait()
		})
	}
}

// TestReadAll is a container of one function: it reads everything but other evaluations'
// temporary files and what is in the memory of other processes.
func TestReadAll(t *testing.T) {
	to := newTargets(t)
	cfg := config(t)
	cfg.ReadAll = true
	runner, stop := start(t, cfg)
	defer stop()
	cmd := command(t, "")
	for what, want := range map[string]string{
		"read:" + to.secret:   "done",
		"read:/proc/meminfo":  "done",
		"write:" + to.secret:  "permission denied",
		"list:" + cfg.TempDir: "permission denied",
		"read:/proc/" + strconv.Itoa(os.Getpid()) + "/environ": "permission denied",
		"write:/proc/" + strconv.Itoa(os.Getpid()) + "/comm":   "permission denied",
		"write:/proc/self/oom_score_adj":                       "permission denied",
	} {
		cmd.Args = []string{"try=" + what}
		if got := attempt(t, runner, cmd); !bytes.Contains([]byte(got), []byte(want)) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
}

// TestReadsItsOwnProcess is what runtimes look at when they start.
func TestReadsItsOwnProcess(t *testing.T) {
	runner, stop := start(t, config(t))
	defer stop()
	cmd := command(t, "")
	for _, file := range []string{"/proc/self/maps", "/proc/self/cgroup", "/proc/self/mountinfo", "/proc/meminfo"} {
		cmd.Args = []string{"try=read:" + file}
		if got := attempt(t, runner, cmd); got != "done" {
			t.Errorf("%s: %q", file, got)
		}
	}
}

// TestHidden has a secret in a directory that functions may read otherwise.
func TestHidden(t *testing.T) {
	to := newTargets(t)
	cfg := config(t)
	cfg.ReadAll = true
	cfg.Hidden = []string{to.secret}
	cmd := command(t, "try=read:"+to.secret)
	runner, stop := start(t, cfg)
	defer stop()
	if got := attempt(t, runner, cmd); !bytes.Contains([]byte(got), []byte("permission denied")) {
		t.Errorf("a hidden file: %q", got)
	}
}

// TestTempDirsStayUsable has a function take all rights to where the temporary directories of
// later ones are made. Landlock and seccomp cannot hold that back: the path is the user's own.
func TestTempDirsStayUsable(t *testing.T) {
	cfg := config(t)
	runner, stop := start(t, cfg)
	defer stop()
	bases, err := filepath.Glob(filepath.Join(cfg.TempDir, "*"))
	if err != nil || len(bases) != 1 {
		t.Fatalf("the directories of this program are %v, %v", bases, err)
	}
	cmd := command(t, "try=chmod:"+bases[0])
	if got := attempt(t, runner, cmd); got != "done" {
		t.Fatalf("to change a mode: %q", got)
	}
	cmd.Args = []string{"try=make-file:"}
	for range 10 { // more than have a directory already
		if got := attempt(t, runner, cmd); got != "done" {
			t.Errorf("to make a file in a later evaluation: %q", got)
		}
	}
	if info, err := os.Stat(bases[0]); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v, want that of the start", info.Mode(), err)
	}
}

// TestNetwork has a function that may use the network.
func TestNetwork(t *testing.T) {
	to := newTargets(t)
	for _, abi := range []int{6, 1} {
		runner, stop := start(t, config(t).WithKernel(abi, true))
		cmd := command(t, "")
		cmd.Network = true
		for what, want := range map[string]string{
			"socket:" + to.tcp: "done", "socket:" + to.udp: "done", "listen:127.0.0.1:0": "done",
			"kill:" + strconv.Itoa(os.Getpid()): "operation not permitted",
			"packets:":                          "operation not permitted",
			"socket:" + to.socket:               "operation not permitted",
			"socket:" + to.abstract:             "operation not permitted",
			"datagrams:":                        "operation not permitted",
			"protocol:":                         "operation not permitted",
		} {
			cmd.Args = []string{"try=" + what}
			if got := attempt(t, runner, cmd); !bytes.Contains([]byte(got), []byte(want)) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		stop()
	}
}
