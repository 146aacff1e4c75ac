// SPDX-License-Identifier: Apache-2.0

package confine

import "github.com/krm-function-runner/function-runner/libs/config"

// Level says what to do where the kernel cannot hold back everything.
type Level string

// The levels.
const (
	Require    Level = "require"     // refuse to start
	BestEffort Level = "best-effort" // hold back what can be held back
	Off        Level = "off"         // hold back nothing
)

// Check adds a problem if the setting of that name is no level. Empty is BestEffort.
func (l Level) Check(checks *config.Checks, name string) {
	checks.That(l == "" || l == Require || l == BestEffort || l == Off, name, string(l), "require, best-effort or off")
}
