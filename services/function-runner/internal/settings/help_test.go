// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
)

// TestHelpHasWhatHasAnEffect checks that the help has every flag and every variable with its meaning, type and default,
// unless it has no effect here.
func TestHelpHasWhatHasAnEffect(t *testing.T) {
	var help strings.Builder
	if _, err := settings.Load([]string{"--help"}, &help); !errors.Is(err, settings.ErrHelp) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  FNR_ADDRESS text\n      the address where callers connect, as host:port (default :9445)\n",
		"  FNR_MAX_MESSAGE_BYTES bytes\n      limits requests and responses (default 6291456)\n",
		"  FNR_TEMPLATE text\n      the ConfigMap with the template of function pods, in the pod-manager's own namespace\n",
	} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("the help lacks %q", want)
		}
	}
	for line := range strings.Lines(strings.ReplaceAll(help.String(), "\t", "    ")) {
		if len(line) > 101 && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("line of %d columns: %s", len(line)-1, line)
		}
	}
	for name, want := range map[string]bool{
		"-max-waitlist-length": true, "FNR_MAX_WAITLIST_LENGTH": false,
		"FNR_EXEC_CONCURRENCY": true, "WRAPPER_SERVER_IMAGE": true, "FNR_CONFINE": true,
		"FNR_ADDRESS": true, "FNR_SERVE_DRAIN_DELAY": true,
	} {
		if got := strings.Contains(help.String(), " "+name+" "); got != want {
			t.Errorf("the help has %s: %v, want %v", name, got, want)
		}
	}
}
