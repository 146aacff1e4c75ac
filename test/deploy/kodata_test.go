// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestImagesGetFunctionsOfTheirPlatform tests how a developer with another kind of machine builds
// the data of images.
func TestImagesGetFunctionsOfTheirPlatform(t *testing.T) {
	platform := regexp.MustCompile(`(?m)^defaultPlatforms: \[(\w+)/(\w+)\]$`).FindStringSubmatch(
		string(mustRead(t, root+"/.ko.yaml")))
	if platform == nil {
		t.Fatal(".ko.yaml names no platform, or several: the functions are built for one")
	}
	if !strings.Contains(string(mustRead(t, root+"/skaffold.yaml")),
		"\n  platforms: ["+platform[1]+"/"+platform[2]+"]\n") {
		t.Error("skaffold builds images for other platforms than ko")
	}
	plan := exec.CommandContext(t.Context(), "make", "-C", root, "--dry-run", "kodata")
	plan.Env = append(plan.Environ(), "GOOS=plan9", "GOARCH=arm")
	out, err := plan.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	builds := 0
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "go build") {
			continue
		}
		builds++
		if !strings.Contains(line, " GOOS="+platform[1]+" GOARCH="+platform[2]+" ") {
			t.Errorf("this is not built for %s: %s", platform[0], line)
		}
		if strings.Contains(line, "/.build/functions/") {
			t.Errorf("this replaces the functions that the developer runs: %s", line)
		}
	}
	if builds != 3 {
		t.Errorf("%d builds, want those of both modules of functions and of the probe:\n%s", builds, out)
	}
}
