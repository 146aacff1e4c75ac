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
	// Root is the directory with the files of its image, on this machine.
	Root string
	// Program is the path of the function's program in the image, followed by its arguments.
	Program []string
	// Env is the image's environment, as KEY=value. Dir is the working directory in the image.
	Env []string
	Dir string
	// User is the user in the image's configuration, such as "1000:1000".
	User string
	// Network is true if the function may use this machine's network.
	Network bool
}

// Settings of all sandboxes: the host name, the default environment that images override, and this machine's files
// for name resolution.
var (
	hostname     = "function"
	environment  = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"}
	networkFiles = []string{"/etc/resolv.conf", "/etc/hosts"}
)

// mergeEnvironment returns the default environment and the image's variables. If a variable occurs several times, the
// last value is used. Texts that are not of the form KEY=value are omitted.
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
