// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// Level is what to do where the kernel cannot hold back everything.
type Level string

// The levels.
const (
	Require    Level = "require"     // do not start
	BestEffort Level = "best-effort" // hold back what can be held back
	Off        Level = "off"         // hold back nothing
)

// Check adds a problem if the setting of that name is no level. Empty is BestEffort.
func (l Level) Check(checks *config.Checks, name string) {
	checks.That(l == "" || l == Require || l == BestEffort || l == Off, name, string(l), "require, best-effort or off")
}

// elsewhere returns why a program does not start on a system other than Linux, where nothing is held
// back; nil if it starts.
func (l Level) elsewhere(system string) error {
	if l != Require {
		return nil
	}
	return fmt.Errorf("confine functions: only Linux can, and this is %s: "+
		"run this program on Linux, or set FNR_CONFINE=best-effort", system)
}
