// SPDX-License-Identifier: Apache-2.0

package function

import (
	"log/slog"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/confine"
)

// Confinement is the settings of how functions are held back, the same for all programs that
// run some.
type Confinement struct {
	// Confine is what to do where the kernel cannot hold back everything: require
	// (do not start), best-effort, or off (hold back nothing).
	Confine confine.Level `default:"best-effort"`
	// MaxTempBytes is how much a function may have in its temporary directory.
	MaxTempBytes int64 `split_words:"true" default:"268435456"`
	// MaxTempFiles is how many files and directories it may have there.
	MaxTempFiles int64 `split_words:"true" default:"10000"`
}

// CheckConfinement adds the problems of the settings. It is a function, since Config types
// embed Confinement and have checks of their own.
func CheckConfinement(checks *config.Checks, c Confinement) {
	c.Confine.Check(checks, "Confine")
	checks.That(c.MaxTempBytes >= 0, "MaxTempBytes", c.MaxTempBytes, "a number of bytes, or 0 for 256 MiB")
	checks.That(c.MaxTempFiles >= 0, "MaxTempFiles", c.MaxTempFiles, "a number of files, or 0 for 10,000")
}

// Confiner returns what confines functions by these settings and the rest of a configuration.
func (c Confinement) Confiner(log *slog.Logger, cfg confine.Config) (*confine.Confiner, error) {
	cfg.Level, cfg.MaxTempBytes, cfg.MaxTempFiles, cfg.Log = c.Confine, c.MaxTempBytes, c.MaxTempFiles, log
	return confine.New(cfg)
}
