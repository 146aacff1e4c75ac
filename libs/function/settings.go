// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"runtime"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/confine"
)

// MaxPrefork is the maximum number of processes that are started in advance for a function.
const MaxPrefork = 64

// MaxLogBytes is the maximum size of a function's log. The middle of a longer log is removed.
const MaxLogBytes = 1 << 20

// Settings configures the execution of functions, in all programs that run functions.
type Settings struct {
	// Concurrency is the number of functions that run concurrently. Zero means four per processor.
	Concurrency int `default:"0"`
	// Prefork is the number of spare processes of each function in use, unless its own configuration sets another number.
	// Zero means none.
	Prefork int `default:"2"`
}

// CheckSettings records the problems of s in checks. It puts prefix before the names of the settings. It is not a
// method, because Config types embed Settings and would inherit the method, although they define their own checks.
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

// Confinement configures the confinement of functions, in all programs that run functions.
type Confinement struct {
	// Confine selects the reaction to a kernel that cannot [confine functions](security.md#function-processes): `require`
	// (do not start), `best-effort`, or `off` (confine nothing).
	Confine confine.Level `default:"best-effort"`
	// MaxTempBytes limits a function's temporary directory, and [`/tmp`](write-a-function.md#files-and-devices) if it is
	// writable. Each directory may contain 10,000 files, or 100,000 in sandboxes.
	MaxTempBytes config.Bytes `split_words:"true" default:"268435456"`
}

// CheckConfinement records the problems of c in checks. It is not a method, because Config types embed Confinement and
// would inherit the method, although they define their own checks.
func CheckConfinement(checks *config.Checks, c Confinement) {
	c.Confine.Check(checks, "Confine")
}

// minMessageBytes is the smallest limit of message sizes that users may set, in bytes.
const minMessageBytes = 64 << 10

// CheckMessageBytes records a problem if bytes, the maximum message size set by the given field, is out of range.
func CheckMessageBytes(checks *config.Checks, field string, bytes config.Bytes) {
	checks.That(bytes >= minMessageBytes && bytes <= 1<<30, field, bytes, "64Ki to 1Gi")
}
