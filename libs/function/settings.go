// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"runtime"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// MaxPrefork is the most spare processes of one function.
const MaxPrefork = 64

// Settings are the settings of how functions run that all programs with functions have.
type Settings struct {
	// Concurrency is how many functions run at a time; 0 is four for each processor.
	Concurrency int `default:"0"`
	// MaxLogBytes is how much a function may log.
	MaxLogBytes int `split_words:"true" default:"1048576"`
	// Prefork is how many spare processes each function in use has at least, unless its own
	// configuration says otherwise; 0 is none.
	Prefork int `default:"2"`
	// Processors is how many processors a function written in Go uses at a time; 0
	// leaves it to Go, which takes all.
	Processors int `default:"1"`
	// GCPercent is how much garbage, in percent of the memory in use, a function written in Go makes
	// before it is collected; 0 leaves it to Go, which takes 100.
	GCPercent int `split_words:"true" default:"200"`
}

// CheckSettings adds the problems of the settings, whose names begin with prefix. It is a
// function, since Config types embed Settings and have checks of their own.
func CheckSettings(checks *config.Checks, prefix string, s Settings) {
	checks.That(s.Concurrency >= 0, prefix+"Concurrency", s.Concurrency, "0 or more")
	checks.That(s.Prefork >= 0 && s.Prefork <= MaxPrefork, prefix+"Prefork", s.Prefork,
		fmt.Sprintf("0 (off) to %d", MaxPrefork))
	checks.That(s.Processors >= 0, prefix+"Processors", s.Processors, "0 or more")
	checks.That(s.GCPercent >= 0, prefix+"GCPercent", s.GCPercent, "0 or more")
}

// concurrency returns how many functions run at a time.
func (s Settings) concurrency() int {
	if s.Concurrency > 0 {
		return s.Concurrency
	}
	return 4 * runtime.GOMAXPROCS(0)
}
