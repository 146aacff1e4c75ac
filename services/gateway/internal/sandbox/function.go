// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"strings"
)

// Function is a function in a sandbox.
type Function struct {
	// Name identifies the function.
	Name string
	// Root is the directory of its root file system.
	Root string
	// Program is the function's program in the image, and its arguments.
	Program []string
	// Env is the image's environment, as KEY=value. Dir is the working directory in the image.
	Env []string
	Dir string
	// User is the user in the image's configuration.
	User string
	// Network lets the function use this machine's network.
	Network bool
}

// Settings of all sandboxes: the host name, the environment of functions whose images define none, and the machine's
// files for name resolution.
var (
	hostname     = "function"
	environment  = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"}
	networkFiles = []string{"/etc/resolv.conf", "/etc/hosts"}
)

// mergeEnvironment returns the function's variables without duplicates: the last value of a variable is used. It omits
// texts that cannot be variables.
func (fn Function) mergeEnvironment() []string {
	var variables []string
	for _, variable := range slices.Concat(environment, fn.Env) {
		key, _, ok := strings.Cut(variable, "=")
		if !ok || key == "" || strings.ContainsRune(variable, 0) {
			continue
		}
		variables = slices.DeleteFunc(variables, func(other string) bool { return strings.HasPrefix(other, key+"=") })
		variables = append(variables, variable)
	}
	return variables
}
