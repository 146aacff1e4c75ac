// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Rights of Landlock, in groups.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readDir  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// writeFile is what a function may do to a device that swallows or makes bytes.
	writeFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// own is what a function may do in its temporary directory: all but to make devices.
	own = readDir | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	handled = own | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// What functions may read where they are many beside each other and beside a server with
// secrets: programs, libraries and what these need to know of the system. Of /etc only what
// is public by its nature: settings may place credentials there.
var (
	readable = []string{
		"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/opt",
		"/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
	}
	readableEtc = []string{
		"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version",
		"environment", "fonts", "gai.conf", "gitconfig", "group", "host.conf", "hostname", "hosts", "inputrc",
		"issue", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-aarch64.path", "ld-musl-x86_64.path",
		"locale.alias", "locale.conf", "localtime", "lsb-release", "magic", "mailcap", "mime.types", "networks",
		"nsswitch.conf", "os-release", "passwd", "perl", "pki/ca-trust/extracted", "pki/tls/cert.pem",
		"pki/tls/certs", "pki/tls/openssl.cnf", "profile", "profile.d", "protocols", "python3", "resolv.conf",
		"rpc", "services", "shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "xml",
	}
	// processes has what runtimes read of themselves: Node.js takes a millisecond longer to start where it
	// does not find its own memory map, and with its cgroup it knows its memory limit. Memory,
	// environment and files of processes outside of a function's domain are not readable all the same, by
	// Landlock's rule on tracing, and the directory cannot be listed.
	processes = "/proc"
	writable  = []string{"/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"}
)

// fileRule allows what is in access beneath a file or directory.
type fileRule struct {
	file   *os.File // with O_PATH
	access uint64
}

// fileRules are Landlock rules with open files.
type fileRules []fileRule

// openFiles opens what all functions may use. What is not there is left out.
func (cfg Config) openFiles() fileRules {
	var rules fileRules
	for _, path := range cfg.readablePaths() {
		rules = rules.add(path, readDir)
	}
	for _, path := range writable {
		rules = rules.add(path, writeFile)
	}
	if cfg.OwnFiles {
		return rules
	}
	return rules.add(processes, unix.LANDLOCK_ACCESS_FS_READ_FILE)
}

func (rules fileRules) add(path string, access uint64) fileRules {
	file, err := openPath(path)
	if err != nil {
		return rules
	}
	if info, err := file.Stat(); err != nil || !info.IsDir() {
		access &^= unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	return append(rules, fileRule{file, access})
}

func (rules fileRules) close() {
	for _, rule := range rules {
		_ = rule.file.Close()
	}
}

// openPath opens a file or directory to name it only, which needs no right to read it.
func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// readablePaths returns what functions may read, without what is hidden.
func (cfg Config) readablePaths() []string {
	if cfg.OwnFiles {
		return nil
	}
	roots := slices.Clone(readable)
	for _, name := range readableEtc {
		roots = append(roots, "/etc/"+name)
	}
	if cfg.ReadAll {
		roots = []string{"/"}
	}
	hidden := []string{resolved(cfg.tempDir())}
	for _, path := range cfg.Hidden {
		hidden = append(hidden, resolved(path))
	}
	var paths []string
	for _, root := range roots {
		paths = append(paths, without(resolved(root), hidden)...)
	}
	return paths
}

// without returns paths that cover root except what is hidden below it. Landlock has no
// rules that forbid, so a directory with something hidden in it is replaced by what else
// is in it.
func without(root string, hidden []string) []string {
	if slices.Contains(hidden, root) {
		return nil
	}
	below := func(path string) bool { return strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/") }
	if !slices.ContainsFunc(hidden, below) {
		return []string{root}
	}
	entries, _ := os.ReadDir(root) // one that cannot be read is of no use to a function either
	var paths []string
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink == 0 { // what it leads to has a place of its own
			paths = append(paths, without(filepath.Join(root, entry.Name()), hidden)...)
		}
	}
	return paths
}

// resolved returns path without symbolic links, as far as it exists.
func resolved(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}
