// SPDX-License-Identifier: Apache-2.0

package component

import (
	"runtime/debug"
	"testing"
)

func TestRequirementsLeaveOutWhatIsInNoRegistry(t *testing.T) {
	got := formatRequirements([]*debug.Module{
		{Path: "golang.org/x/net", Version: "v0.60.0"},
		{Path: "example.com/libs", Version: "v0.0.0", Replace: &debug.Module{Path: "../libs"}},
		{Path: "golang.org/x/sys", Version: "v0.49.0"},
	})
	const want = "\nrequire golang.org/x/net v0.60.0\n\nrequire golang.org/x/sys v0.49.0\n"
	if got != want {
		t.Errorf("requirements:\n%s\nwant:\n%s", got, want)
	}
}
