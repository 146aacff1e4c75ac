// SPDX-License-Identifier: Apache-2.0

//go:build linux

package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// TestProgramsHaveTheirLibraries finds the libraries of a program on this machine, and one of them in an
// unpacked package.
func TestProgramsHaveTheirLibraries(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	files, err := image.Program("/bin/sh", shell)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 3 || files[0].Path != "/bin/sh" || files[0].Source != shell {
		t.Skipf("the shell is linked statically: %v", files)
	}
	library := files[1]
	unpacked := t.TempDir()
	copied := filepath.Join(unpacked, "usr/lib", filepath.Base(library.Path))
	if err := os.MkdirAll(filepath.Dir(copied), 0o750); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(library.Source)
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(unpacked, "usr/share/nodejs/acorn/dist/acorn.js")
	if err := os.MkdirAll(filepath.Dir(module), 0o750); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{copied: string(content), module: "x"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err = image.NodeJS(shell, unpacked)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		found[strings.TrimPrefix(file.Source, unpacked)] = file.Path
	}
	for source, path := range map[string]string{
		shell: "/usr/bin/node", "/usr/lib/" + filepath.Base(library.Path): "/usr/lib/" + filepath.Base(library.Path),
		"/usr/share/nodejs/acorn/dist/acorn.js": "/usr/share/nodejs/acorn/dist/acorn.js",
	} {
		if found[source] != path {
			t.Errorf("%s is at %q, want %s", source, found[source], path)
		}
	}
	if _, err := image.Program("/x", module); err == nil {
		t.Error("a file that is no program has no error")
	}
}
