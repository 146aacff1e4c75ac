// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner/localrunnertest"
)

// installed matches the packages that the Dockerfile installs in addition to its base image.
var installed = regexp.MustCompile(`apt-get install -y --no-install-recommends ([\w .-]+) &&`)

// TestImageRendersPackages renders a package in a root directory with the content of fnctl's image: the required
// packages of Debian, the packages of the Dockerfile and what they depend on, as they are installed on this machine.
func TestImageRendersPackages(t *testing.T) {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		t.Skip("the packages of the image are installed on Debian only")
	}
	names := installed.FindStringSubmatch(read(t, "packaging/image/Dockerfile", nil))
	if names == nil {
		t.Fatal("the Dockerfile installs no packages")
	}
	root := localrunnertest.SharedDir(t)
	linkFiles(t, root, dependencies(t, strings.Fields(names[1])))
	registry := localrunnertest.Open(t)
	registry.Push(t, "fn/echo:v1", "echo")
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"usr/local/bin/fnctl": string(program), "work/web/service.yaml": configMap,
		"work/web/Kptfile": strings.Replace(stale, "label:v1", registry.Host+"/fn/echo:v1", 1),
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := `export HOME=/tmp PATH=/usr/local/bin:/usr/bin:/bin
		git --version
		ls /usr/share/ca-certificates/mozilla
		fnctl render /work/web --local --phases -o stdout`
	command := []string{
		"bwrap", "--ro-bind", root, "/", "--ro-bind", "/usr", "/host/usr", "--proc", "/proc", "--dev", "/dev",
		"--tmpfs", "/tmp", "--unshare-pid", "--uid", "999", "--clearenv", "--setenv", asProgram, "1",
		"--setenv", "FNR_INSECURE_REGISTRIES", registry.Host, "/bin/sh", "-ec", script,
	}
	if os.Geteuid() == 0 { // containers are no owners of /proc either
		command = append([]string{"setpriv", "--reuid=999", "--regid=999", "--clear-groups"}, command...)
	}
	out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	expect(t, "the image", string(out), "git version ", ".crt\n", "Sandboxes by /usr/bin/bwrap", "name: settings")
}

// packageName matches the name at the beginning of a dependency such as "libc6 (>= 2.36)".
var packageName = regexp.MustCompile(`[a-z0-9][a-z0-9.+-]*`)

// dependencies returns the required packages of this machine, the given packages, and all that they depend on.
func dependencies(t *testing.T, names []string) []string {
	t.Helper()
	const format = "${Package}\t${Priority}\t${Provides}\t${Pre-Depends}, ${Depends}\n"
	out, err := exec.CommandContext(t.Context(), "dpkg-query", "-W", "-f", format).Output()
	if err != nil {
		t.Fatal(err)
	}
	depends, providers := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(line, "\t")
		depends[fields[0]] = fields[3]
		for provided := range strings.SplitSeq(fields[2], ",") {
			providers[packageName.FindString(provided)] = fields[0]
		}
		if fields[1] == "required" {
			names = append(names, fields[0])
		}
	}
	for i := 0; i < len(names); i++ {
		if depends[names[i]] == "" {
			t.Skipf("package %s of the image is not installed here", names[i])
		}
		for alternatives := range strings.SplitSeq(depends[names[i]], ",") {
			for alternative := range strings.SplitSeq(alternatives, "|") {
				name := packageName.FindString(alternative)
				if depends[name] == "" {
					name = providers[name]
				}
				if name != "" && !slices.Contains(names, name) {
					names = append(names, name)
				}
				if name != "" {
					break
				}
			}
		}
	}
	return names
}

// used matches the programs, libraries and certificates among the files of packages.
var used = regexp.MustCompile(`/s?bin/|/lib(64|/git-core|/\w+-linux-gnu)?/[^/]+$|/share/ca-certificates/`)

// linkFiles makes a root directory with links to the files of installed packages below /usr. The links lead to
// /host/usr, so that a program in the root directory finds no libraries or programs of other packages.
func linkFiles(t *testing.T, root string, packages []string) {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "dpkg-query", append([]string{"-L"}, packages...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"dev", "proc", "tmp", "host/usr", "usr"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} { // packages may still name files by these paths
		if target, linkErr := os.Readlink("/" + dir); linkErr == nil {
			err = errors.Join(err, os.Symlink(target, filepath.Join(root, dir)))
		}
	}
	for line := range strings.Lines(string(list)) {
		file := strings.TrimSpace(line)
		if !used.MatchString(file) {
			continue
		}
		dir, missing := filepath.EvalSymlinks(filepath.Dir(file))
		info, statErr := os.Lstat(file)
		if missing != nil || statErr != nil || info.IsDir() || !strings.HasPrefix(dir, "/usr/") {
			continue // a directory, or a file that this machine leaves out
		}
		link := filepath.Join(root, dir, filepath.Base(file))
		if _, statErr := os.Lstat(link); statErr != nil {
			err = errors.Join(err, os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink("/host"+dir+"/"+filepath.Base(file), link))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
