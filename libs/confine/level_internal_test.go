// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"strings"
	"testing"
)

// TestOtherSystems is what New decides where nothing can be held back.
func TestOtherSystems(t *testing.T) {
	for _, level := range []Level{"", BestEffort, Off} {
		if err := level.elsewhere("darwin"); err != nil {
			t.Errorf("with %q a program does not start: %v", level, err)
		}
	}
	err := Require.elsewhere("darwin")
	if err == nil || !strings.Contains(err.Error(), "this is darwin") || !strings.Contains(err.Error(), "FNR_CONFINE=best-effort") {
		t.Errorf("with require the error is %v, want the system, and what to do", err)
	}
}
