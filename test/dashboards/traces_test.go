// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// filter finds the pattern for the images of spans.
var filter = regexp.MustCompile(`span\.container\.image\.name=~"([^"]+)"`)

// TestSpansAreFoundByTheirFunctions compares the pattern with the names that spans have: what a user chooses are the
// labels of metrics, and Tempo matches whole values.
func TestSpansAreFoundByTheirFunctions(t *testing.T) {
	match := filter.FindStringSubmatch(spanSelector)
	if match == nil {
		t.Fatalf("no pattern in %s", spanSelector)
	}
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for image, others := range map[string]string{
		"ghcr.io/krm-functions-catalog/set-namespace:v1":          "ghcr.io/krm-functions-catalog/set-namespace:v1.2",
		"ghcr.io/krm-functions-catalog/set-namespace:v1" + digest: "ghcr.io/set-namespace:v1/other:v1",
		"registry.example:5000/set-namespace" + digest:            "registry.example:5000/not-set-namespace" + digest,
	} {
		name, err := imagename.Parse(image, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, chosen := range []string{name.Short(), "none|" + name.Short(), ".*"} {
			pattern, err := regexp.Compile("^(?:" + strings.ReplaceAll(match[1], "$function", chosen) + ")$")
			if err != nil {
				t.Fatal(err)
			}
			if !pattern.MatchString(name.String()) {
				t.Errorf("%s does not match %s", pattern, name)
			}
			if chosen != ".*" && pattern.MatchString(others) {
				t.Errorf("%s matches %s", pattern, others)
			}
		}
	}
}
