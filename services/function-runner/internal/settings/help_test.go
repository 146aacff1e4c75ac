// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
)

// TestHelpHasWhatHasAnEffect checks that the help has every setting once: as a flag, or else as a
// variable, unless it has no effect here.
func TestHelpHasWhatHasAnEffect(t *testing.T) {
	var help strings.Builder
	if _, err := settings.Load([]string{"--help"}, &help); !errors.Is(err, settings.ErrHelp) {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"-max-waitlist-length": true, "FNR_MAX_WAITLIST_LENGTH": false,
		"FNR_EXEC_CONCURRENCY": true, "WRAPPER_SERVER_IMAGE": true, "FNR_CONFINE": true,
		"FNR_ADDRESS": false, "FNR_SERVE_DRAIN_DELAY": true,
	} {
		if got := strings.Contains(help.String(), " "+name+" "); got != want {
			t.Errorf("the help has %s: %v, want %v", name, got, want)
		}
	}
}
