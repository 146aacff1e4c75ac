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

// Groups of Landlock access rights.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readDir  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// writeFile contains the rights to read and write a file. Functions get them only for devices that discard or generate
	// bytes, such as /dev/null.
	writeFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// own contains the access rights for a function's own temporary directory. They do not allow functions to create or
	// control devices.
	own = readDir | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	handled = own | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// Files without secrets, which every function may read in addition to [Certificates]: programs, libraries and
// information about the system. Other files in /etc may contain credentials.
var (
	readable = []string{
		"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/opt",
		"/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
	}
	readableEtc = []string{
		"alternatives", "bash.bashrc", "ca-certificates.conf", "crypto-policies", "debian_version", "environment",
		"fonts", "gai.conf", "gitconfig", "group", "host.conf", "hostname", "hosts", "inputrc", "issue", "java",
		"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-aarch64.path", "ld-musl-x86_64.path", "locale.alias",
		"locale.conf", "localtime", "lsb-release", "magic", "mailcap", "mime.types", "networks", "nsswitch.conf",
		"os-release", "passwd", "perl", "pki/tls/openssl.cnf", "profile", "profile.d", "protocols", "python3",
		"resolv.conf", "rpc", "services", "shells", "ssl/openssl.cnf", "terminfo", "timezone", "xml",
	}
	// processes is the path of the proc file system. Functions may read its files, because language runtimes read
	// information about themselves there. For example, Node.js reads its memory limit, and starts a millisecond slower
	// without its memory map. Functions may not list /proc. They cannot read the memory, environment or files of processes
	// outside of their Landlock domain, because Landlock treats such access as tracing.
	processes = "/proc"
	writable  = []string{"/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"}
)

// fileRule is a Landlock rule that allows access to a file, or to a directory and everything below it.
type fileRule struct {
	file   *os.File // opened with O_PATH
	access uint64
}

// fileRules is a list of Landlock rules. Callers must close the files of the rules with closeFiles.
type fileRules []fileRule

// openFiles returns rules that allow access to the files that every function may use. It skips missing files.
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

// openPath opens a file or directory with O_PATH. This is enough for a Landlock rule, and requires no permission to
// read the file.
func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// readablePaths returns the paths that functions may read, without the hidden paths of the configuration.
func (cfg Config) readablePaths() []string {
	if cfg.OwnFiles {
		return nil
	}
	roots := slices.Concat(readable, Certificates)
	for _, name := range readableEtc {
		roots = append(roots, "/etc/"+name)
	}
	if cfg.ReadAll {
		roots = []string{"/"}
	}
	hidden := []string{resolvePath(cfg.TempDir)}
	for _, path := range cfg.Hidden {
		hidden = append(hidden, resolvePath(path))
	}
	var paths []string
	for _, root := range roots {
		paths = append(paths, pathsWithout(resolvePath(root), hidden)...)
	}
	return paths
}

// pathsWithout returns paths that together cover root, except the hidden paths below it. Landlock rules can only allow
// access, so a rule for a directory would also allow the hidden paths in it. Therefore pathsWithout replaces such a
// directory by the directory's other entries.
func pathsWithout(root string, hidden []string) []string {
	if slices.Contains(hidden, root) {
		return nil
	}
	below := func(path string) bool { return strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/") }
	if !slices.ContainsFunc(hidden, below) {
		return []string{root}
	}
	entries, _ := os.ReadDir(root) // functions cannot read an unreadable directory either
	var paths []string
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink == 0 { // the target of a link has its own path
			paths = append(paths, pathsWithout(filepath.Join(root, entry.Name()), hidden)...)
		}
	}
	return paths
}

// resolvePath returns the absolute path. If the file exists, it also resolves symbolic links.
func resolvePath(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}
