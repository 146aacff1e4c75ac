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
	// Root is the directory on this machine that contains the files of the function's image.
	Root string
	// Program is the path of the function's program within the image, followed by the program's arguments.
	Program []string
	// Env contains the image's environment variables, as KEY=value.
	Env []string
	// Dir is the working directory within the image.
	Dir string
	// User is the user in the image's configuration, such as "1000:1000", or empty.
	User string
	// Network is true if the function may use this machine's network.
	Network bool
}

// Settings of all sandboxes: the host name, the environment variables that images may override, and the files of
// this machine that functions with network access need for name resolution.
var (
	hostname     = "function"
	environment  = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"}
	networkFiles = []string{"/etc/resolv.conf", "/etc/hosts"}
)

// mergeEnvironment returns the default environment variables and the image's variables. If a variable occurs
// several times, the last value applies. Entries that are not of the form KEY=value are omitted.
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
