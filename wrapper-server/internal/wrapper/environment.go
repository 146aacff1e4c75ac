// SPDX-License-Identifier: Apache-2.0

package wrapper

import (
	"slices"
	"strings"
)

// isolated is the first command-line argument of a wrapper server that already runs in the environment from [Isolate].
const isolated = "isolated"

// functionPrefix is the prefix of the function's variables in the environment from [Isolate]. Variables for the server
// have no such prefix.
const functionPrefix = "function:"

// environmentFlag is the name of a flag of the wrapper server. The flag lists the environment variables whose values
// are from the pod, not from the image. The server itself uses only these variables.
const environmentFlag = "environment"

// Isolate returns a command line and an environment for executing the wrapper server again. For the server, the new
// environment contains only the pod's variables, listed in the flag --environment. Variables of the image thus cannot
// configure the server's Go runtime (GODEBUG), TLS (SSL_CERT_FILE) or HTTP clients (HTTPS_PROXY). For the function, the
// environment contains all variables with functionPrefix before their names. If the server is already isolated, ok is
// false, and args is argv without the argument isolated.
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

// podVariables returns the names of the variables that the pod sets. It reads them from the flag --environment.
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

// InPod reports whether this wrapper server runs in a pod. environ must be an environment from [Isolate]. InPod checks
// for the variable KUBERNETES_SERVICE_HOST. Kubernetes sets this variable in each pod, and overrides the image's value.
func InPod(environ []string) bool {
	return lookup(environ, functionPrefix+"KUBERNETES_SERVICE_HOST") != ""
}

// functionEnv returns the function's environment, with the variables of its image and its pod. It omits variables that
// configure the server (FNR_, OTEL_) and variables that Kubernetes adds (KUBERNETES_).
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

// lookup returns the value of a variable, or an empty text if the variable is not set.
func lookup(environ []string, name string) string {
	for _, variable := range environ {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}
