// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// Level determines the reaction to a kernel that lacks restrictions for functions.
type Level string

// Values of Level.
const (
	Require    Level = "require"     // do not start
	BestEffort Level = "best-effort" // confine as far as possible
	Off        Level = "off"         // do not confine
)

// Check records a problem with the setting called name if l is not a valid level. An empty level is valid and means
// BestEffort.
func (l Level) Check(checks *config.Checks, name string) {
	checks.That(l == "" || l == Require || l == BestEffort || l == Off, name, string(l), "require, best-effort or off")
}

// checkOtherSystem returns an error if the level requires restrictions. It is for systems other than Linux, which
// support none.
func (l Level) checkOtherSystem(system string) error {
	if l != Require {
		return nil
	}
	return fmt.Errorf("confine functions: only Linux can, and this is %s: "+
		"run this program on Linux, or set FNR_CONFINE=best-effort", system)
}
