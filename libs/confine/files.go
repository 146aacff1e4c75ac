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
	// writeFile are the rights to a device that discards or generates bytes.
	writeFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// own are the rights to the function's temporary directory: all but creating devices.
	own = readDir | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	handled = own | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// Readable files of functions that run next to each other and next to a server with secrets: programs, libraries and
// their information about the system. Of /etc only public files: other settings may contain credentials.
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
	// processes contains information that runtimes read about themselves: Node.js starts a millisecond slower if it
	// cannot read its own memory map, and reads its memory limit from its cgroup. Memory, environment and files of
	// processes outside of a function's domain stay unreadable, by Landlock's rule on tracing, and the directory cannot
	// be listed.
	processes = "/proc"
	writable  = []string{"/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"}
)

// fileRule allows access to a file or directory and everything below it.
type fileRule struct {
	file   *os.File // opened with O_PATH
	access uint64
}

// fileRules are Landlock rules with open files.
type fileRules []fileRule

// openFiles opens the files that all functions may use. It skips missing files.
func (cfg Config) openFiles() fileRules {
	var rules fileRules
	for _, path := range cfg.readablePaths() {
		rules = rules.addPath(path, readDir)
	}
	for _, path := range writable {
		rules = rules.addPath(path, writeFile)
	}
	if cfg.OwnFiles {
		return rules
	}
	return rules.addPath(processes, unix.LANDLOCK_ACCESS_FS_READ_FILE)
}

func (rules fileRules) addPath(path string, access uint64) fileRules {
	file, err := openPath(path)
	if err != nil {
		return rules
	}
	if info, err := file.Stat(); err != nil || !info.IsDir() {
		access &^= unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	return append(rules, fileRule{file, access})
}

func (rules fileRules) closeFiles() {
	for _, rule := range rules {
		_ = rule.file.Close()
	}
}

// openPath opens a file or directory only to name it, which requires no right to read it.
func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// readablePaths returns the paths that functions may read, without hidden paths.
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
	hidden := []string{resolvePath(cfg.tempDir())}
	for _, path := range cfg.Hidden {
		hidden = append(hidden, resolvePath(path))
	}
	var paths []string
	for _, root := range roots {
		paths = append(paths, pathsWithout(resolvePath(root), hidden)...)
	}
	return paths
}

// pathsWithout returns paths that cover root except hidden paths below it. Landlock rules can only allow, so a
// directory with something hidden in it is replaced by its other entries.
func pathsWithout(root string, hidden []string) []string {
	if slices.Contains(hidden, root) {
		return nil
	}
	below := func(path string) bool { return strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/") }
	if !slices.ContainsFunc(hidden, below) {
		return []string{root}
	}
	entries, _ := os.ReadDir(root) // an unreadable directory is of no use to a function either
	var paths []string
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink == 0 { // the target is covered by its own path
			paths = append(paths, pathsWithout(filepath.Join(root, entry.Name()), hidden)...)
		}
	}
	return paths
}

// resolvePath returns path without symbolic links, as far as it exists.
func resolvePath(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}
