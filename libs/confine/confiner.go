// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Confiner starts processes that can reach only the files, processes and addresses that its Config permits. A nil
// Confiner starts processes without restrictions.
type Confiner struct {
	cfg         Config
	kernel      kernel
	files       fileRules
	filters     map[bool]*filter // key: whether the function may use the network; nil without seccomp
	temp        *tempDirs
	shared      []string // usable directories of Config.Shared
	sharedRules fileRules
}

// New returns a Confiner. If the level is Off, it returns nil, which restricts nothing. If the level is Require, it
// fails if this kernel lacks restrictions.
func New(cfg Config) (*Confiner, error) {
	if cfg.Level == Off {
		cfg.Log.Warn("functions are not confined", "setting", "FNR_CONFINE=off")
		return nil, nil //nolint:nilnil // a nil Confiner is one that does nothing
	}
	cfg = cfg.withDefaults()
	c := &Confiner{cfg: cfg}
	if cfg.kernel != nil {
		c.kernel = *cfg.kernel
	} else {
		c.kernel = probeKernel()
	}
	if err := c.buildShared(); err != nil {
		return nil, fmt.Errorf("confine functions: %w", err)
	}
	lacks := c.kernel.missingFeatures()
	if c.temp == nil {
		lacks = append(lacks, "a directory for temporary files")
	}
	if len(lacks) > 0 && cfg.Level == Require {
		c.Close()
		return nil, fmt.Errorf("confine functions: this system lacks %s: "+
			"use another kernel or container runtime, or set FNR_CONFINE=best-effort", strings.Join(lacks, ", "))
	}
	cfg.Log.Info("functions are confined", "level", cfg.Level, "landlock_abi", c.kernel.abi,
		"lacks", lacks, "replaced", c.kernel.replacedFeatures())
	return c, nil
}

func (cfg Config) withDefaults() Config {
	cfg.Level = cmp.Or(cfg.Level, BestEffort)
	cfg.TempDir = cmp.Or(cfg.TempDir, os.TempDir())
	cfg.MaxTempBytes = cmp.Or(cfg.MaxTempBytes, 256<<20)
	cfg.MaxTempFiles = cmp.Or(cfg.MaxTempFiles, 10_000)
	return cfg
}

// buildShared creates the seccomp filters, Landlock rules and directories that all functions of a confiner share.
func (c *Confiner) buildShared() error {
	if c.kernel.seccomp {
		c.filters = map[bool]*filter{}
		for _, network := range []bool{false, true} {
			calls, err := c.kernel.filteredCalls(network)
			if err != nil {
				return err
			}
			if c.filters[network], err = newFilter(calls); err != nil {
				return err
			}
		}
	}
	sweep(c.cfg.TempDir)
	// We check the shared directories before we create a temporary directory, because TempDir may be one of them.
	c.shared = c.cfg.usableShared()
	temp, err := newTempDirs(c.cfg)
	if err != nil {
		c.cfg.Log.Warn("functions have no directory for temporary files", "error", err)
	}
	c.temp = temp
	if c.kernel.abi > 0 {
		c.files = c.cfg.openFiles()
		for _, path := range c.shared {
			c.sharedRules = c.sharedRules.addPath(path, own)
		}
	}
	return nil
}

// Close removes the temporary directories of all functions. No function may be started afterwards.
func (c *Confiner) Close() {
	if c == nil {
		return
	}
	c.files.closeFiles()
	c.sharedRules.closeFiles()
	c.temp.close()
}

// Setup contains the environment and the restrictions of a process that is about to start.
type Setup struct {
	// Env is the environment of the process. It contains TMPDIR if Temp is not nil.
	Env []string
	// Temp is the temporary directory of the process, or nil if there is none. The caller must remove it after the
	// process has exited, or if the start fails.
	Temp *TempDir

	confiner *Confiner // nil restricts nothing
	network  bool
	rules    ruleset
}

// Prepare creates the restrictions for a process of fn with the environment env. Callers must close the Setup after
// the process has started.
func (c *Confiner) Prepare(fn Function, env []string) (*Setup, error) {
	if c == nil {
		return &Setup{Env: env, rules: noRules}, nil
	}
	temp, err := c.temp.makeDir()
	if err != nil {
		return nil, err
	}
	if fn.Shared {
		temp.countShared(c.shared)
	}
	rules, err := c.newRules(fn, temp)
	if err != nil {
		rules.close()
		return nil, errors.Join(err, temp.Remove())
	}
	return &Setup{Env: temp.withTempDir(env), Temp: temp, confiner: c, network: fn.Network, rules: rules}, nil
}

// Restricts reports whether the process has restrictions. If so, callers must start the process on a new thread that
// first calls RestrictThread.
func (c *Setup) Restricts() bool { return c.confiner != nil }

// Close frees the resources that only the start of the process needs.
func (c *Setup) Close() { c.rules.close() }

// LimitProcess sets the resource limits of the started process. It ignores errors, because the process may have
// exited.
func (c *Setup) LimitProcess(pid int) {
	if c.Restricts() {
		_ = Limits{FileBytes: c.confiner.cfg.MaxTempBytes}.Set(pid, 0, 0)
	}
}

// RestrictThread confines the calling thread and the processes that it starts. The restrictions are permanent.
func (c *Setup) RestrictThread() error {
	if !c.Restricts() {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep a function from gaining privileges: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("take the capabilities from a function: %w", err)
	}
	if err := c.rules.enforceRules(); err != nil {
		return fmt.Errorf("put a function into a Landlock domain: %w", err)
	}
	if err := c.confiner.filters[c.network].loadFilter(); err != nil {
		return fmt.Errorf("put a function under a seccomp filter: %w", err)
	}
	return nil
}

// dropCapabilities drops all capabilities of the calling thread. With no_new_privs, even root does not regain them
// when it executes a program.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
