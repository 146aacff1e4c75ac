// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/function"
)

// TestTrimPrefixes has Porch's texts, byte for byte.
func TestTrimPrefixes(t *testing.T) {
	const reason = "no such file: function \"fn:v1\": x"
	for _, text := range []string{
		"",
		"unable to evaluate fn:v1 with pod evaluator: ",
		`unable to evaluate fn:v1 with pod evaluator: Failed to execute function "fn:v1": `,
		"unable to get the grpc client to the pod for fn:v1: ",
		"unable to get the sandbox for fn:v1: ",
		"unable to start the sandbox for fn:v1: ",
		`Failed to execute function "fn:v1": `,
		`function "fn:v1": `,
	} {
		if got := function.TrimPrefixes(text+reason, "fn:v1"); got != reason {
			t.Errorf("%q is shown as %q, want %q", text+reason, got, reason)
		}
		other := strings.ReplaceAll(text, "fn:v1", "other:v1")
		if got := function.TrimPrefixes(other+reason, "fn:v1"); got != other+reason {
			t.Errorf("%q is shown as %q, although it names another image", other+reason, got)
		}
	}
}
