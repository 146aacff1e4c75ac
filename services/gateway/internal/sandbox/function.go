// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"strings"
)

// Function is what to run in a sandbox.
type Function struct {
	// Name distinguishes it from other functions.
	Name string
	// Root is the directory with its root file system.
	Root string
	// Program is its program in the image, and its arguments.
	Program []string
	// Env is the image's environment, as KEY=value, and Dir the working directory in the image.
	Env []string
	Dir string
	// User is the user as the image names it.
	User string
	// Network lets the function use this machine's network.
	Network bool
}

// What all sandboxes have: their host name, the environment of functions whose images have none, and the files
// of this machine that programs need to find others by name.
var (
	hostname     = "function"
	environment  = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"}
	networkFiles = []string{"/etc/resolv.conf", "/etc/hosts"}
)

// environment returns the function's variables, each once: of several, the last counts. What no program can get as a
// variable is left out.
func (fn Function) environment() []string {
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
