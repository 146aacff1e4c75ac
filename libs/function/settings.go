// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"runtime"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// MaxPrefork is the most spare processes of one function.
const MaxPrefork = 64

// MaxLogBytes is how much is kept of what a function logs.
const MaxLogBytes = 1 << 20

// Settings are the settings of how functions run that all programs with functions have.
type Settings struct {
	// Concurrency is how many functions run at a time; 0 is four for each processor.
	Concurrency int `default:"0"`
	// Prefork is how many spare processes each function in use has at least, unless its own
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

// concurrency returns how many functions run at a time.
func (s Settings) concurrency() int {
	if s.Concurrency > 0 {
		return s.Concurrency
	}
	return 4 * runtime.GOMAXPROCS(0)
}
