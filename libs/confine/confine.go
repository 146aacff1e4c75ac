// SPDX-License-Identifier: Apache-2.0

// Package confine holds back function processes, without privileges: what they can
// read, write, signal, look into and connect to.
//
// A function is forked from a thread that has confined itself. Its process inherits
// from the thread what a process cannot take off again: no_new_privs, no capabilities,
// a Landlock domain and a seccomp filter. The thread ends afterwards, so that no other
// thread of the program has any of it. This needs no further program, no user
// namespace and no second exec. Each process gets a Landlock domain of its own, and
// processes of different domains cannot trace or signal each other.
//
// What it holds back on which kernels is a table in docs/security.md.
package confine

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// Config is what a Confiner works with.
type Config struct {
	// Level says what to do where the kernel cannot hold back everything; empty is BestEffort.
	Level Level
	// ReadAll lets functions read every file, except those in Hidden and in TempDir. It is
	// for a container that has nothing but one function.
	ReadAll bool
	// Hidden are files and directories that functions must not read, although they are in a
	// directory that functions may read otherwise.
	Hidden []string
	// TempDir is where temporary directories of functions are made; empty is the system's.
	TempDir string
	// MaxTempBytes and MaxTempFiles bound each of these directories; zero is 256 MiB and 10,000.
	MaxTempBytes, MaxTempFiles int64
	// Log gets one line that says what is not held back.
	Log *slog.Logger

	kernel *kernel // nil is the one that runs; tests set an older one
}

// Confiner starts confined processes. A nil Confiner starts them without restrictions.
type Confiner struct {
	cfg     Config
	kernel  kernel
	files   fileRules
	filters map[bool]*filter // by whether the network is allowed; nil without seccomp
	temp    *tempDirs
	ready   chan place    // filled by Run
	fewer   chan struct{} // of size one: Run has to fill ready
}

// New returns a Confiner, nil if the level is Off. With Require it fails unless this kernel
// can hold back everything.
func New(cfg Config) (*Confiner, error) {
	if cfg.Level == Off {
		cfg.Log.Warn("functions are not confined", "setting", "FNR_CONFINE=off")
		return nil, nil //nolint:nilnil // a nil Confiner is one that does nothing
	}
	cfg = cfg.withDefaults()
	c := &Confiner{cfg: cfg, kernel: cfg.probe(), ready: make(chan place, maxReady), fewer: make(chan struct{}, 1)}
	if err := c.build(); err != nil {
		return nil, fmt.Errorf("confine functions: %w", err)
	}
	lacks := c.kernel.lacks()
	if c.temp == nil {
		lacks = append(lacks, "a directory for temporary files")
	}
	if len(lacks) > 0 && cfg.Level == Require {
		c.Close()
		return nil, fmt.Errorf("confine functions: this system lacks %s: "+
			"use another kernel or container runtime, or set FNR_CONFINE=best-effort", strings.Join(lacks, ", "))
	}
	cfg.Log.Info("functions are confined", "level", cfg.Level, "landlock_abi", c.kernel.abi,
		"lacks", lacks, "replaced", c.kernel.replaced())
	return c, nil
}

func (cfg Config) withDefaults() Config {
	cfg.Level = cmp.Or(cfg.Level, BestEffort)
	cfg.MaxTempBytes = cmp.Or(cfg.MaxTempBytes, 256<<20)
	cfg.MaxTempFiles = cmp.Or(cfg.MaxTempFiles, 10_000)
	return cfg
}

// probe returns what the kernel can do, which a trial on a thread of its own confirms.
func (cfg Config) probe() kernel {
	if cfg.kernel != nil {
		return *cfg.kernel
	}
	return probeKernel()
}

// build makes what all processes share.
func (c *Confiner) build() error {
	if c.kernel.seccomp {
		c.filters = map[bool]*filter{}
		for _, network := range []bool{false, true} {
			calls, err := c.kernel.calls(network)
			if err != nil {
				return err
			}
			if c.filters[network], err = newFilter(calls); err != nil {
				return err
			}
		}
	}
	temp, err := newTempDirs(c.cfg, c.refill)
	if err != nil {
		c.cfg.Log.Warn("functions have no directory for temporary files", "error", err)
	}
	c.temp = temp
	if c.kernel.abi > 0 {
		c.files = c.cfg.openFiles()
	}
	return nil
}

// Close removes the temporary directories. No process may be started any more.
func (c *Confiner) Close() {
	if c == nil {
		return
	}
	c.discardReady()
	c.files.close()
	c.temp.close()
}

// Function says what to start and what it may do.
type Function struct {
	// Path is the program's file, and Dir what a relative path is relative to.
	Path, Dir string
	// Network allows sockets.
	Network bool
}

// Start calls start on a confined thread, with the variables that name the process's
// temporary directory in addition to env. The caller removes the directory, which is nil
// without one, after the process has ended.
func (c *Confiner) Start(fn Function, env []string, start func(env []string) (*os.Process, error)) (*os.Process, *TempDir, error) {
	if c == nil {
		p, err := start(env)
		return p, nil, err
	}
	place, err := c.place()
	if err != nil {
		return nil, nil, err
	}
	defer place.rules.close()
	env = place.temp.environment(env)
	var p *os.Process
	if err = place.rules.addProgram(c.kernel, fn); err == nil {
		onOwnThread(func() {
			if err = c.restrict(fn, place.rules); err == nil {
				p, err = start(env)
			}
		})
	}
	if err != nil {
		return nil, nil, errors.Join(err, place.temp.Remove())
	}
	c.limit(p.Pid)
	return p, place.temp, nil
}
