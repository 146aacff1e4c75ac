// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// Values of the setting FNR_SANDBOX, which selects the program that starts sandboxes. A path is valid too.
const (
	Auto       = "auto"
	Off        = "off"
	Bubblewrap = "bubblewrap"
	Runc       = "runc"
	Crun       = "crun"
	Runsc      = "runsc"
	Direct     = "direct"
)

// starter creates the commands that start functions with one launcher, such as bubblewrap. [Launcher.Command] adds the
// settings that all launchers share.
type starter interface {
	command(fn Function) (fnproc.Command, *fnproc.StartError)
}

// launchers are the programs that can start sandboxes, in the order in which FNR_SANDBOX=auto tries them: the fastest
// first. It tries the launcher "direct", which needs no program, only if Config.Required is true.
var launchers = []struct {
	name, program string
	// new returns a starter for the launcher l. The argument path is the path of the launcher's program.
	new func(l *Launcher, path string) (starter, error)
}{
	{Bubblewrap, "bwrap", newBubblewrap},
	{Crun, "crun", newCrun},
	{Runc, "runc", newRunc},
	{Runsc, "runsc", newRunsc},
	{Direct, "", newDirect},
}

// Names lists the valid values of FNR_SANDBOX, for error messages and help texts.
const Names = "auto, off, bubblewrap, crun, runc, runsc, direct, or the path of such a program"

// Check reports whether s is a valid value of FNR_SANDBOX. A path is valid even if it does not exist.
func Check(s string) bool {
	return s == "" || s == Auto || s == Off || isLauncher(s) || filepath.IsAbs(s)
}

// All returns the names of all launchers, in the order in which FNR_SANDBOX=auto tries them.
func All() (names []string) {
	for _, l := range launchers {
		names = append(names, l.name)
	}
	return names
}

func isLauncher(name string) bool {
	for _, l := range launchers {
		if l.name == name {
			return true
		}
	}
	return false
}

// kindOf returns the name of the launcher, such as crun, for the path of its program. It compares only the
// beginning of the file name, so that crun-1.20 is recognized too. An unknown program is treated as bubblewrap.
func kindOf(path string) string {
	for _, l := range launchers {
		if l.program != "" && strings.HasPrefix(filepath.Base(path), l.program) {
			return l.name
		}
	}
	return Bubblewrap
}

// findLauncher returns the launcher that FNR_SANDBOX selects, after a successful trial. With FNR_SANDBOX=auto, it
// returns the first launcher that works, and the errors of the previous launchers in skipped.
func findLauncher(ctx context.Context, cfg Config) (found *Launcher, skipped, err error) {
	if runtime.GOOS != "linux" {
		return nil, nil, fmt.Errorf("find the launcher of sandboxes: they need Linux, and this is %s: "+
			"set FNR_SANDBOX=off", runtime.GOOS)
	}
	kind, path := cfg.Launcher, ""
	if filepath.IsAbs(cfg.Launcher) {
		kind, path = kindOf(cfg.Launcher), cfg.Launcher
	}
	for _, candidate := range launchers {
		if (kind != Auto && kind != candidate.name) || (kind == Auto && candidate.name == Direct && !cfg.Required) {
			continue
		}
		program := candidate.program
		if path != "" {
			program = path
		}
		launcher, err := startTrial(ctx, cfg, candidate.name, program, candidate.new)
		if err == nil {
			return launcher, skipped, nil
		}
		skipped = errors.Join(skipped, err)
	}
	return nil, nil, skipped
}

// startTrial creates a launcher and tests it with a first sandbox. It returns an error if the test fails.
func startTrial(
	ctx context.Context, cfg Config, kind, program string,
	create func(*Launcher, string) (starter, error),
) (_ *Launcher, err error) {
	path := ""
	if program != "" {
		if path, err = lookUp(program, kind); err != nil {
			return nil, err
		}
	}
	l := newLauncher(cfg, path)
	if l.starter, err = create(l, path); err == nil && path != "" {
		err = l.tryLauncher(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// lookUp returns the path of a program. If the program is missing, the error names the package to install.
func lookUp(program, pkg string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("find a launcher of sandboxes: %w: install the package %s, or set FNR_SANDBOX", err, pkg)
	}
	return filepath.Abs(path)
}

// lookUpAll returns the paths of programs. If a program is missing, the error names the package util-linux.
func lookUpAll(programs ...string) (paths []string, err error) {
	for _, program := range programs {
		path, err := lookUp(program, "util-linux")
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return slices.Clip(paths), nil
}
