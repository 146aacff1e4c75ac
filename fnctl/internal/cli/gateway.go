// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// DefaultAddress is where a gateway on this machine listens.
const DefaultAddress = "localhost:9445"

const (
	defaultTimeout = 5 * time.Minute
	// defaultMaxMessageBytes is the default of Porch and of all runners.
	defaultMaxMessageBytes = 6 << 20
)

// gatewayFlags are the flags for reaching the gateway.
type gatewayFlags struct {
	address         string
	timeout         time.Duration
	maxMessageBytes int
	phases          bool
}

// registerAddress adds the one flag that all commands share, including commands without evaluations.
func (f *gatewayFlags) registerAddress(flags *pflag.FlagSet, env Environment) {
	flags.StringVar(&f.address, "address", cmp.Or(env.Address, DefaultAddress),
		"gateway as host:port, or as a URL of http or https; by default that of FNR_ADDRESS")
}

func (f *gatewayFlags) register(flags *pflag.FlagSet, env Environment) {
	f.registerAddress(flags, env)
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout,
		"longest time for one function, with the start of its pod; 0 for no limit")
	flags.BoolVar(&f.phases, "phases", isTerminal(env.Stderr),
		"show what functions wait for, such as their pod; by default on terminals")
	flags.IntVar(&f.maxMessageBytes, "max-message-size", defaultMaxMessageBytes, "largest ResourceList in bytes, each way")
}

func (f *gatewayFlags) connect() (*client.Gateway, error) {
	return client.New(client.Config{Address: f.address, MaxMessageBytes: f.maxMessageBytes})
}

// evaluator returns an evaluator of images, at the gateway, and of programs of this machine. It shows
// on progress what an evaluation waits for, if the flags ask for that.
func (f *gatewayFlags) evaluator(env Environment, gateway *client.Gateway, progress *ui.Progress) *local.Evaluator {
	return &local.Evaluator{
		Images:         &phases{Gateway: gateway, progress: progress, wanted: f.phases},
		Environment:    slices.Clone(env.Environ),
		MaxOutputBytes: f.maxMessageBytes,
	}
}
