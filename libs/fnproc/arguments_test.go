// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fnproc_test

import (
	"os"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// launcher is a launcher that writes what it reads as its arguments, and then its limit of file sizes.
func launcher(arguments string) fnproc.Command {
	return fnproc.Command{
		Path: "/bin/sh", Args: []string{"-c", "cat <&4 && ulimit -f"}, MaxOutput: 1 << 20, MaxLog: 1 << 10,
		Env: []string{"PATH=/bin:/usr/bin"},
		Launch: &fnproc.Launch{
			Name: "fn", Files: []string{os.DevNull}, Arguments: []byte(arguments),
			Limits: func() confine.Limits { return confine.Limits{FileBytes: 512 << 10} },
		},
	}
}

// TestArgumentsFollowLimits has launchers that read little, and more than fits into a pipe.
func TestArgumentsFollowLimits(t *testing.T) {
	for _, arguments := range []string{"--a\x00b\x00", strings.Repeat("x", 300<<10)} {
		for _, cmd := range []fnproc.Command{launcher(arguments), asUser(launcher(arguments))} {
			out, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
			if want := arguments + "1024\n"; err != nil || string(out.Output) != want {
				t.Errorf("%d bytes, %v, %s, want %d with the arguments and the limit", len(out.Output), err, out.Log, len(want))
			}
		}
	}
}

// asUser has a launcher run as another user, where this one may do that.
func asUser(cmd fnproc.Command) fnproc.Command {
	if os.Getuid() == 0 {
		cmd.Launch.User, cmd.Launch.Group = 65432, 65433
	}
	return cmd
}

// TestLauncherThatReadsNoArguments ends, and leaves, a launcher that does not read them.
func TestLauncherThatReadsNoArguments(t *testing.T) {
	cmd := launcher(strings.Repeat("x", 300<<10))
	cmd.Args[1] = "exit 7"
	if out, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil); err != nil || out.ExitCode != 7 {
		t.Errorf("%v, %v, want its exit code", out.ExitCode, err)
	}
}
