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

	"github.com/krm-function-runner/function-runner/libs/osthread"
)

// Confiner starts processes that can reach only the files, processes and addresses that its Config permits. A nil
// Confiner starts processes without restrictions.
type Confiner struct {
	cfg         Config
	kernel      kernel
	files       fileRules
	filters     map[bool]*filter // key: whether the function may use the network; nil without seccomp
	temp        *tempDirs
	shared      sharedDirs
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
	cfg.MaxTempBytes = cmp.Or(cfg.MaxTempBytes, 256<<20)
	cfg.MaxTempFiles = cmp.Or(cfg.MaxTempFiles, 10_000)
	return cfg
}

// buildShared creates the seccomp filters, Landlock rules and directories that all processes of this confiner
// share.
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
	temp, err := newTempDirs(c.cfg)
	if err != nil {
		c.cfg.Log.Warn("functions have no directory for temporary files", "error", err)
	}
	c.temp = temp
	c.shared = newSharedDirs(c.cfg.Shared)
	if c.kernel.abi > 0 {
		c.files = c.cfg.openFiles()
		for _, path := range c.cfg.Shared {
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

// Start calls the function start on a confined thread, so that the new process inherits the restrictions. If the
// process gets no temporary directory, the returned directory is nil. Otherwise the environment passed to start
// contains TMPDIR, and the caller must remove the directory after the process has exited.
func (c *Confiner) Start(
	fn Function, env []string, start func(env []string) (*os.Process, error),
) (*os.Process, *TempDir, error) {
	if c == nil {
		p, err := start(env)
		return p, nil, err
	}
	temp, err := c.temp.makeDir()
	if err != nil {
		return nil, nil, err
	}
	rules, err := c.newRules(fn, temp)
	defer rules.close()
	env = temp.withTempDir(env)
	if fn.Shared {
		temp.countShared(c.shared)
	}
	var p *os.Process
	if err == nil {
		osthread.Own(func() {
			if err = c.restrictThread(fn, rules); err == nil {
				p, err = start(env)
			}
		})
	}
	if err != nil {
		return nil, nil, errors.Join(err, temp.Remove())
	}
	c.limitProcess(p.Pid)
	return p, temp, nil
}

// restrictThread confines the calling thread and the processes forked from it.
func (c *Confiner) restrictThread(fn Function, rules ruleset) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep a function from gaining privileges: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("take the capabilities from a function: %w", err)
	}
	if err := rules.enforceRules(); err != nil {
		return fmt.Errorf("put a function into a Landlock domain: %w", err)
	}
	if err := c.filters[fn.Network].loadFilter(); err != nil {
		return fmt.Errorf("put a function under a seccomp filter: %w", err)
	}
	return nil
}

// dropCapabilities drops all capabilities of the calling thread. With no_new_privs, root does not regain them when
// it executes a program.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
