// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"regexp"
	"strings"
	"testing"
)

// decision matches a line with a number that users may want to change.
var decision = regexp.MustCompile(
	`(startupProbe|readinessProbe|livenessProbe|terminationGracePeriodSeconds|` +
		`FNR_SERVE_DRAIN_DELAY|FNR_SERVE_SHUTDOWN_TIMEOUT|requests|limits)(:|,|$| #)`)

// TestDecisionsAreExplained checks that probes, resources and drain times have a reason, in the
// line itself or just above it.
func TestDecisionsAreExplained(t *testing.T) {
	found := 0
	eachManifest(t, deploy, func(name string, content []byte) {
		above := ""
		for line := range strings.Lines(string(content)) {
			line = strings.TrimSpace(line)
			code, why, _ := strings.Cut(line, "#")
			if decision.MatchString(strings.TrimSpace(code)) {
				found++
				if why == "" && !strings.HasPrefix(above, "#") {
					t.Errorf("%s: no comment gives the reason: %s", name, line)
				}
			}
			above = line
		}
	})
	if found < 40 {
		t.Errorf("%d probes, resources and times to drain were found: are they written in another way now?", found)
	}
}
