// SPDX-License-Identifier: Apache-2.0

// Package version has the version of the programs.
package version

import (
	"cmp"
	"runtime/debug"
)

// stamped is set by a release build, with the linker's -X.
var stamped string

// String returns the version of this program: the release's version, or else the commit as far as Go recorded it, or
// else "devel".
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return of(stamped, info)
}

// of returns the version that the build recorded, in this order.
func of(stamped string, info *debug.BuildInfo) string {
	built := info.Main.Version
	if built == "(devel)" {
		built = ""
	}
	return cmp.Or(stamped, built, "devel")
}
