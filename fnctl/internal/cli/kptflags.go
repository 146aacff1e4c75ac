// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
)

// ignored contains kpt's flags that fnctl accepts without an effect, so that command lines for kpt also run with fnctl.
// Each entry contains the type of the flag, and explains to users why the flag has no effect.
var ignored = map[string]struct{ kind, reason string }{
	"image-pull-policy":   {"string", "the cluster decides when images are pulled"},
	"allow-network":       {"bool", "the function runner decides whether functions have a network"},
	"network":             {"bool", "the function runner decides whether functions have a network"},
	"as-current-user":     {"bool", "functions run as the user that the function runner gives them"},
	"truncate-output":     {"bool", "output is never truncated"},
	"stack-trace":         {"bool", "there is nothing to trace"},
	"log-flush-frequency": {"string", "nothing is logged"},
}

// everywhere lists the flags that all commands of kpt accept. fnctl's commands therefore accept them too.
var everywhere = []string{"truncate-output", "stack-trace", "log-flush-frequency"}

// kptFlags adds flags of kpt to a command of fnctl, for users who replace kpt by fnctl. The command ignores such a
// flag, or rejects it with a reason. The help does not show these flags.
type kptFlags struct {
	accepted []string
	rejected map[string]string
	flags    *pflag.FlagSet
}

// register adds flags of kpt that the command accepts and ignores.
func (k *kptFlags) register(flags *pflag.FlagSet, names ...string) {
	k.flags = flags
	k.accepted = slices.Concat(names, everywhere)
	for _, name := range k.accepted {
		if ignored[name].kind == "bool" {
			flags.Bool(name, false, ignored[name].reason)
		} else {
			flags.String(name, "", ignored[name].reason)
		}
		_ = flags.MarkHidden(name)
	}
}

// reject adds a boolean flag of kpt that fnctl does not support. The command fails if the user sets this flag.
func (k *kptFlags) reject(flags *pflag.FlagSet, name, reason string) {
	k.rejectValue(flags, name, reason)
	flags.Lookup(name).NoOptDefVal = "true"
}

func (k *kptFlags) rejectValue(flags *pflag.FlagSet, name, reason string) {
	if k.rejected == nil {
		k.rejected = map[string]string{}
	}
	k.rejected[name] = reason
	flags.StringArray(name, nil, reason)
	_ = flags.MarkHidden(name)
}

// check returns an error if the user set a flag of kpt that fnctl does not support.
func (k *kptFlags) check() error {
	for name, reason := range k.rejected {
		if k.flags.Changed(name) {
			return fmt.Errorf("cannot take --%s: %s", name, reason)
		}
	}
	return nil
}

// reportIgnored prints a line about flags of kpt that the user set but fnctl ignores. The line contains the reasons.
func (k *kptFlags) reportIgnored(env command.Environment, flags *pflag.FlagSet) {
	var messages []string
	for _, name := range k.accepted {
		if flags.Changed(name) {
			messages = append(messages, fmt.Sprintf("--%s has no effect: %s", name, ignored[name].reason))
		}
	}
	if len(messages) > 0 {
		env.ErrPrinter().Line("%s", strings.Join(messages, "; "))
	}
}

// errMetaResources is the error for --include-meta-resources, a flag of earlier releases of kpt.
var errMetaResources = errors.New("takes no --include-meta-resources: they are always included")
