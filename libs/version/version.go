// SPDX-License-Identifier: Apache-2.0

// Package version contains the version of this project's programs.
package version

import (
	"cmp"
	"runtime/debug"
)

// stamped is the version of a release. Release builds set it with the linker flag -X.
var stamped string

// String returns the version of this program. This is the release version, or the version that Go derived from the
// commit, or "devel" if neither version is known.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return format(stamped, info)
}

// format implements String. Its inputs are parameters, so that tests can set them.
func format(stamped string, info *debug.BuildInfo) string {
	built := info.Main.Version
	if built == "(devel)" {
		built = ""
	}
	return cmp.Or(stamped, built, "devel")
}
