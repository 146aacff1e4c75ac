// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

func TestRunCannotStart(t *testing.T) {
	dir := t.TempDir()
	for name, file := range map[string]struct {
		content string
		mode    fs.FileMode
	}{
		"plain":     {"#!/bin/sh\n", 0o600},
		"script":    {"#!/no/such/interpreter\n", 0o700},
		"senseless": {"neither a program nor a script", 0o700},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(file.content), file.mode); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		reason string
		cmd    fnproc.Command
		want   error
		text   string
	}{
		"missing": {
			"the system's error says it all",
			fnproc.Command{Path: dir + "/missing"},
			fs.ErrNotExist, "no such file or directory",
		},
		"not executable": {
			"the mode is what to change",
			fnproc.Command{Path: dir + "/plain"},
			fs.ErrPermission, "not executable",
		},
		"directory": {
			"permissions are not what is wrong",
			fnproc.Command{Path: dir},
			fs.ErrPermission, "is a directory",
		},
		"no interpreter": {
			"the file itself is not what is missing",
			fnproc.Command{Path: dir + "/script"},
			fs.ErrNotExist, "interpreter",
		},
		"no program": {
			"the format may be another machine's",
			fnproc.Command{Path: dir + "/senseless"},
			syscall.ENOEXEC, "architecture",
		},
		"no directory": {
			"the program is not what is missing",
			fnproc.Command{Path: "/bin/sh", Dir: dir + "/gone"},
			fs.ErrNotExist, "working directory",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), tc.cmd, []byte(input))
			start, ok := errors.AsType[*fnproc.StartError](err)
			if !ok || start.Path != tc.cmd.Path {
				t.Fatalf("error %v is no StartError of %s", err, tc.cmd.Path)
			}
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %q, want %q with %q in it: %s", err, tc.want, tc.text, tc.reason)
			}
		})
	}
}
