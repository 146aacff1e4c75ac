// SPDX-License-Identifier: Apache-2.0

// Package version contains the version of the programs.
package version

import (
	"cmp"
	"runtime/debug"
)

// stamped is the version of a release build, which sets it with the linker's -X.
var stamped string

// String returns the version of this program: the version of the release, or the version that Go recorded for the
// commit, or "devel".
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return format(stamped, info)
}

// format implements String with the given values.
func format(stamped string, info *debug.BuildInfo) string {
	built := info.Main.Version
	if built == "(devel)" {
		built = ""
	}
	return cmp.Or(stamped, built, "devel")
}
