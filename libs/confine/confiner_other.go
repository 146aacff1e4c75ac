// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package confine

import (
	"errors"
	"runtime"
)

// Confiner starts processes without restrictions, because only Linux supports the restrictions.
type Confiner struct{}

// New returns a nil Confiner, which restricts nothing. It fails if the level is Require.
func New(cfg Config) (*Confiner, error) {
	if err := cfg.Level.checkOtherSystem(runtime.GOOS); err != nil {
		return nil, err
	}
	cfg.Log.Warn("functions are not confined", "setting", "FNR_CONFINE", "level", cfg.Level, "system", runtime.GOOS)
	return nil, nil //nolint:nilnil // a nil Confiner is one that does nothing
}

// Close does nothing.
func (c *Confiner) Close() {}

// EmptyShared returns true.
func (c *Confiner) EmptyShared() (empty bool) { return true }

// Setup contains the environment of a process that is about to start. Temp is nil, because only Linux limits files.
type Setup struct {
	Env  []string
	Temp *TempDir
}

// Prepare returns a Setup with env, without restrictions.
func (c *Confiner) Prepare(_ Function, env []string) (*Setup, error) { return &Setup{Env: env}, nil }

// Restricts returns false.
func (c *Setup) Restricts() bool { return false }

// RestrictThread does nothing.
func (c *Setup) RestrictThread() error { return nil }

// LimitProcess does nothing.
func (c *Setup) LimitProcess(int) {}

// Close does nothing.
func (c *Setup) Close() {}

// Set fails, because resource limits are set only on Linux.
func (Limits) Set(int, uint32, uint32) error { return errors.ErrUnsupported }

// TempDir is the temporary directory of a process. It is always nil on systems other than Linux.
type TempDir struct{}

// Remove does nothing.
func (d *TempDir) Remove() error { return nil }

// RemoveLater does nothing.
func (d *TempDir) RemoveLater() {}

// Limit returns 0.
func (d *TempDir) Limit() int64 { return 0 }

// Free returns true, because only Linux supports limits of a temporary directory.
func (d *TempDir) Free() (bytes int64, ok bool) { return 0, true }
