// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"strings"
	"testing"
)

// TestOtherSystems is what New decides where nothing can be held back.
func TestOtherSystems(t *testing.T) {
	for _, level := range []Level{"", BestEffort, Off} {
		if err := level.checkOtherSystem("darwin"); err != nil {
			t.Errorf("with %q a program does not start: %v", level, err)
		}
	}
	err := Require.checkOtherSystem("darwin")
	if err == nil {
		t.Fatal("with require there is no error")
	}
	for _, want := range []string{"this is darwin", "FNR_CONFINE=best-effort"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("with require the error is %v, want the system, and what to do", err)
		}
	}
}
