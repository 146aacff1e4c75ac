// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"slices"
	"strings"
)

// isolated is the first argument of a wrapper server whose environment [Isolate] made.
const isolated = "isolated"

// functionPrefix begins the names of the function's variables in the environment of an isolated server.
const functionPrefix = "function:"

// environmentFlag is the flag with the names of the variables that the pod sets.
const environmentFlag = "environment"

// Isolate returns the command line and the environment with which a wrapper server must execute itself, so that its
// image does not configure it: a container's environment consists of the image's variables, overridden by the pod's.
// The server keeps only the variables that --environment names, which the pod sets. All other variables are for the
// function. Nothing in the server can depend on them, such as Go's runtime on GODEBUG, TLS on SSL_CERT_FILE, or HTTP
// clients on HTTPS_PROXY.
//
// For a server that is already isolated, ok is false, and args is the command line without its mark.
func Isolate(argv, environ []string) (args, env []string, ok bool) {
	if len(argv) > 1 && argv[1] == isolated {
		return slices.Delete(slices.Clone(argv), 1, 2), environ, false
	}
	names := podVariables(argv[1:])
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(names, name) {
			env = append(env, variable)
		}
		env = append(env, functionPrefix+variable)
	}
	return slices.Insert(slices.Clone(argv), 1, isolated), env, true
}

// podVariables returns the names that --environment=NAME,… lists.
func podVariables(args []string) []string {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		if names, ok := strings.CutPrefix(strings.TrimLeft(arg, "-"), environmentFlag+"="); ok {
			return strings.Split(names, ",")
		}
	}
	return nil
}

// InPod reports whether an isolated server runs in a pod: Kubernetes sets the variable in pods, overriding an image's.
func InPod(environ []string) bool {
	return lookup(environ, functionPrefix+"KUBERNETES_SERVICE_HOST") != ""
}

// functionEnv returns the environment of the function: the variables of its image and its pod, except the server's and
// the variables that Kubernetes injects.
func functionEnv(environ []string) []string {
	env := []string{}
	for _, variable := range environ {
		variable, ok := strings.CutPrefix(variable, functionPrefix)
		if ok && !hasAnyPrefix(variable, "FNR_", "OTEL_", "KUBERNETES_") {
			env = append(env, variable)
		}
	}
	return env
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// lookup returns the value of a variable; it is empty if the variable is not set.
func lookup(environ []string, name string) string {
	for _, variable := range environ {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}
