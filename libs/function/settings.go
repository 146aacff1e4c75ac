// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"runtime"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/confine"
)

// MaxPrefork is the most spare processes of one function.
const MaxPrefork = 64

// MaxLogBytes is how much is kept of what a function logs.
const MaxLogBytes = 1 << 20

// Settings are the settings of how functions run that all programs with functions have.
type Settings struct {
	// Concurrency is how many functions run at a time; 0 is four for each processor.
	Concurrency int `default:"0"`
	// Prefork is how many spare processes each function in use has, unless its own
	// configuration says otherwise; 0 is none.
	Prefork int `default:"2"`
}

// CheckSettings adds the problems of the settings, whose names begin with prefix. It is a
// function, since Config types embed Settings and have checks of their own.
func CheckSettings(checks *config.Checks, prefix string, s Settings) {
	checks.That(s.Concurrency >= 0, prefix+"Concurrency", s.Concurrency, "0 or more")
	checks.That(s.Prefork >= 0 && s.Prefork <= MaxPrefork, prefix+"Prefork", s.Prefork,
		fmt.Sprintf("0 (off) to %d", MaxPrefork))
}

// Slots returns the number of functions that run concurrently.
func (s Settings) Slots() int {
	if s.Concurrency > 0 {
		return s.Concurrency
	}
	return 4 * runtime.GOMAXPROCS(0)
}

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

// minMessageBytes is the smallest sensible limit of messages, in bytes.
const minMessageBytes = 64 << 10

// CheckMessageBytes adds a problem if the limit of messages, which is the setting of a field, is not sensible.
func CheckMessageBytes(checks *config.Checks, field string, bytes int) {
	checks.That(bytes >= minMessageBytes && bytes <= 1<<30, field, bytes, "65536 to 1073741824 bytes")
}
