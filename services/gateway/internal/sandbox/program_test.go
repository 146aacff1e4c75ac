// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
)

func TestProgramIsFoundInTheImage(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"usr/bin", "fn", "bin.d"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"usr/bin/node": 0o555, "fn/run": 0o555, "fn/data": 0o444} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "fn/text"), []byte("cat\n"), 0o555); err != nil {
		t.Fatal(err)
	}
	foreign := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_S390), Version: uint32(elf.EV_CURRENT),
	}
	var program bytes.Buffer
	if err := binary.Write(&program, binary.LittleEndian, foreign); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "fn/foreign"), program.Bytes(), 0o555); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"bin": "/usr/bin", "usr/bin/sh": "../../fn/run", "shadow": "/etc/shadow",
		"up": "../../../../../../bin/sh", "loop": "loop", "far": "far-1" + strings.Repeat("/..", 1000) + "/far-1",
		"far-1": strings.Repeat("fn/../", 680) + "far-2", "far-2": strings.Repeat("fn/../", 680) + "far-3",
		"far-3": strings.Repeat("fn/../", 680) + "fn",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct{ program, dir, path, want, err string }{
		"absolute":          {"/fn/run", "/", "", "/fn/run", ""},
		"by a link":         {"/bin/node", "/", "", "/bin/node", ""},
		"by two links":      {"/bin/sh", "/", "", "/bin/sh", ""},
		"in PATH":           {"node", "/", "/fn:/bin", "/bin/node", ""},
		"in the usual PATH": {"node", "/", "", "/usr/bin/node", ""},
		"in the directory":  {"./run", "/fn", "", "/fn/run", ""},
		"out and in again":  {"/up", "/", "", "/up", ""},
		"missing":           {"/fn/no", "/", "", "", "fork/exec /fn/no: no such file or directory"},
		"not in PATH":       {"no", "/", "/bin", "", "it is in no directory of the image's PATH"},
		"no program":        {"/fn/data", "/", "", "", "permission denied (the file is not executable)"},
		"a directory":       {"/fn", "/", "", "", "permission denied (it is a directory)"},
		"a text": {
			"/fn/text", "/", "", "", "exec format error (the file is for another architecture, or a script without a first",
		},
		"of another machine": {
			"/fn/foreign", "/", "", "", "the image's program is for linux/s390x, and this machine is linux/" + runtime.GOARCH,
		},
		"out of the image": {"/shadow", "/", "", "", "no such file or directory"},
		"a circle":         {"/loop", "/", "", "", "too many levels of symbolic links"},
		"a long name":      {"/" + strings.Repeat("x/", 1<<20), "/", "", "", "file name too long"},
		"many places":      {"node", "/", strings.Repeat("/fn:", 3000), "", "more than 1024 directories and links"},
		"many steps":       {"/far/run", "/", "", "", "more than 1024 directories and links"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var env []string
			if tc.path != "" {
				env = []string{"PATH=/nonsense", "PATH=" + tc.path}
			}
			got, err := sandbox.FindProgram(root, tc.program, tc.dir, env)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if (got != tc.want && tc.err == "") || (said == "") != (tc.err == "") || !strings.Contains(said, tc.err) ||
				len(said) > 1000 {
				t.Errorf("got %.100q, %.1000s, want %q and %q", got, said, tc.want, tc.err)
			}
		})
	}
}
