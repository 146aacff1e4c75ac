// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"strings"
)

// Prefixes of error texts for callers, in Porch's words. The verb stands for the image's name.
const (
	PodPrefix     = "unable to evaluate %s with pod evaluator: "
	LeasePrefix   = "unable to get the grpc client to the pod for %s: "
	SandboxPrefix = "unable to get the sandbox for %s: "
	NamePrefix    = "function %q: "
	launchPrefix  = "unable to start the sandbox for %s: "
	executePrefix = "Failed to execute function %q: "
)

// TrimPrefixes removes the prefixes with the image's name from an error text, for users who see the name next to it. It
// keeps the prefix of timeouts, because only this prefix says that time ran out.
func TrimPrefixes(text, image string) string {
	for _, prefix := range [...]string{PodPrefix, LeasePrefix, SandboxPrefix, NamePrefix, launchPrefix, executePrefix} {
		text = strings.TrimPrefix(text, fmt.Sprintf(prefix, image))
	}
	return text
}
