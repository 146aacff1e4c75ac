// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"strings"
	"testing"
)

// TestGuessesAreForSettings checks that each suggested setting exists, and that no guess is itself a setting. The
// document is generated from the settings of all programs.
func TestGuessesAreForSettings(t *testing.T) {
	document, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	isSetting := func(name string) bool { return strings.Contains(string(document), "\n| `"+name+"` |") }
	for guess, meant := range guesses {
		if !isSetting(meant) || isSetting(guess) {
			t.Errorf("%s is a setting: %v, %s: %v; want false, true", guess, isSetting(guess), meant, isSetting(meant))
		}
	}
}

// TestGuessesKeepTheirMeaning checks names that are similar to a setting with another meaning.
func TestGuessesKeepTheirMeaning(t *testing.T) {
	known := []string{"FNR_FUNCTION_NETWORK", "FNR_TTL", "FNR_TEMPLATE", "FNR_NAMESPACE"}
	for _, name := range []string{"FNR_FUNCTION_MEMORY", "FNR_CPU", "FNR_TAG", "FNR_ENV"} {
		if advice := adviceFor(name, known); strings.Contains(advice, "meant") {
			t.Errorf("%s%s", name, advice)
		}
	}
}
