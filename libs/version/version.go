// SPDX-License-Identifier: Apache-2.0

// Package version contains the version of this project's programs.
package version

import (
	"cmp"
	"runtime/debug"
)

// stamped is the version of a release. The linker sets it in release builds (-X).
var stamped string

// String returns the version of the release, or the version that Go recorded for the commit, or "devel".
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return format(stamped, info)
}

// format implements String. Tests call it with their own values.
func format(stamped string, info *debug.BuildInfo) string {
	built := info.Main.Version
	if built == "(devel)" {
		built = ""
	}
	return cmp.Or(stamped, built, "devel")
}
