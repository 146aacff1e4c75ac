// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine_test

import (
	"testing"

	"github.com/krm-function-runner/function-runner/libs/confine"
)

// TestSandboxFilterIsAProgram checks the form; the gateway's tests load it.
func TestSandboxFilterIsAProgram(t *testing.T) {
	filter, err := confine.SandboxFilter()
	if err != nil {
		t.Fatal(err)
	}
	const instruction, most = 8, 4096
	if n := len(filter); n == 0 || n%instruction != 0 || n/instruction > most {
		t.Errorf("a filter of %d bytes, want instructions of %d", n, instruction)
	}
}
