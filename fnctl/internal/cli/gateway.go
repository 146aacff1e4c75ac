// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/rendercache"
	"github.com/krm-function-runner/function-runner/fnctl/internal/runner"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// DefaultAddress is the address of a gateway on this machine, for users who set no address.
const DefaultAddress = "localhost:9445"

const (
	defaultTimeout = 5 * time.Minute
	// defaultMaxMessageBytes is the default maximum size of a ResourceList at a gateway. Porch and all function
	// runners have the same default, 6 MiB.
	defaultMaxMessageBytes = 6 << 20
	// localMaxMessageBytes is the default maximum size of a ResourceList for functions on this machine. It is 64 MiB,
	// because no gateway limits it.
	localMaxMessageBytes = 64 << 20
)

type gatewayFlags struct {
	address         string
	timeout         time.Duration
	maxMessageBytes int
	phases, trace   bool
	local, offline  bool
	cache           bool
	cluster         clusterFlags
	// environment contains variables of functions in addition to their usual environment, as KEY=VALUE.
	environment []string
	// help makes functions run with the argument --help, so that they show their help.
	help bool
	// containers lists container runtimes to run functions with, instead of a gateway. It is ignored with --local.
	containers []string
}

// gatewayAddress returns the default of the flag --address.
func (e Environment) gatewayAddress() string {
	return cmp.Or(e.lookUp("FNCTL_ADDRESS"), DefaultAddress)
}

// registerAddress adds the flags that select the gateway, also for commands that run no function.
func (f *gatewayFlags) registerAddress(flags *pflag.FlagSet, env Environment) {
	flags.StringVar(&f.address, "address", env.gatewayAddress(),
		"gateway as host:port, or as a URL of http or https; by default FNCTL_ADDRESS")
	f.cluster.register(flags, env)
}

func (f *gatewayFlags) register(flags *pflag.FlagSet, env Environment) {
	f.registerAddress(flags, env)
	f.registerLocal(flags)
	flags.BoolVar(&f.cache, "cache", false, "with --local: keep on disk what functions return, and run none again whose "+
		"image and input are the same; for functions whose output depends on nothing else")
	f.registerLimits(flags)
	flags.BoolVar(&f.phases, "phases", isTerminal(env.Stderr),
		"show what functions wait for, such as their pod; by default on terminals")
	flags.BoolVar(&f.trace, "trace", false, "show where the time of each evaluation went, as a tree of spans")
}

// registerLocal adds the flags that make functions run on this machine.
func (f *gatewayFlags) registerLocal(flags *pflag.FlagSet) {
	flags.BoolVar(&f.local, "local", false, "run functions on this machine, in sandboxes, without a function runner")
	flags.BoolVar(&f.offline, "offline", false, "with --local: use images that were pulled before, and call no registry")
}

// registerLimits adds the flags that limit the time and the size of an evaluation.
func (f *gatewayFlags) registerLimits(flags *pflag.FlagSet) {
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout,
		"longest time for one function, with the start of its pod; 0 for no limit")
	flags.IntVar(&f.maxMessageBytes, "max-message-size", 0,
		"largest ResourceList in bytes, each way; by default 6 MiB, and 64 MiB with --local and for --exec")
}

func (f *gatewayFlags) check(flags *pflag.FlagSet) error {
	switch {
	case f.local && flags.Changed("address"):
		return errors.New("takes --local or --address, not both")
	case f.local && slices.ContainsFunc(clusterNames, flags.Changed):
		return errors.New("takes --local or --" + strings.Join(clusterNames, ", --") + ", not both")
	case f.cache && !f.local:
		return errors.New("takes --cache with --local only: a function runner elsewhere has a result cache of its own")
	case f.offline && !f.local:
		return errors.New("takes --offline with --local only: a function runner elsewhere has its own images")
	}
	return nil
}

// noGateway is the advice if the user gave no address and no gateway listens at the default address.
const noGateway = "run functions on this machine with --local, start a function runner here, or give the address " +
	"of one with --address or FNCTL_ADDRESS"

func (f *gatewayFlags) newClient(env Environment) (*client.Gateway, error) {
	config, err := f.clientConfig(env)
	if err != nil {
		return nil, err
	}
	return client.New(config)
}

// clientConfig returns the client's configuration. With --namespace, the client connects through kubectl.
func (f *gatewayFlags) clientConfig(env Environment) (client.Config, error) {
	config := client.Config{Address: f.address, MaxMessageBytes: f.maxMessage(defaultMaxMessageBytes)}
	if f.cluster.isUsed() {
		f.cluster.forwardTo(&config)
		return config, nil
	}
	if env.lookUp("FNCTL_ADDRESS") == "" && f.address == DefaultAddress {
		config.Unreachable = noGateway
	}
	return config, f.cluster.checkUnused()
}

// maxMessage returns the maximum size of a ResourceList, from --max-message-size or else byDefault.
func (f *gatewayFlags) maxMessage(byDefault int) int { return cmp.Or(f.maxMessageBytes, byDefault) }

// evaluator runs images at a gateway or on this machine, and programs on this machine.
type evaluator struct {
	local.Evaluator
	close func() error
}

// open returns an evaluator that runs images at the gateway, or on this machine with --local. It always runs
// programs (--exec) on this machine. Callers must close the evaluator.
func (f *gatewayFlags) open(ctx context.Context, env Environment, progress *ui.Progress) (*evaluator, error) {
	e := &evaluator{
		Evaluator: local.Evaluator{
			ImageProgram:   env.imageProgram,
			Environment:    slices.Concat(env.Environ, f.environment),
			MaxOutputBytes: f.maxMessage(localMaxMessageBytes),
		},
		close: func() error { return nil },
	}
	if e.ImageProgram != "" {
		return e, nil
	}
	runtimes := f.containers
	if f.local {
		runtimes = env.containerNames(runtime.GOOS)
	}
	if len(runtimes) > 0 {
		return e, f.useContainers(e, env, runtimes, progress)
	}
	gateway, images, err := f.connect(ctx, env, progress)
	if err != nil {
		return nil, err
	}
	e.Images = &phases{Gateway: gateway, wanted: f.phases}
	e.close = gateway.Close
	f.addTraces(e, gateway, env)
	if f.cache {
		return e, f.addCache(e, images)
	}
	return e, nil
}

// connect returns a client of the gateway. With --local, it starts a gateway in this process and also returns its
// runner, which stops when the client is closed. Without --local, the runner is nil.
func (f *gatewayFlags) connect(ctx context.Context, env Environment, progress *ui.Progress) (
	*client.Gateway, runner.Runner, error,
) {
	if !f.local {
		gateway, err := f.newClient(env)
		return gateway, nil, err
	}
	images, err := runner.Start(ctx, runner.Config{
		Offline: f.offline, MaxMessageBytes: f.maxMessage(localMaxMessageBytes), Environment: f.environment,
		Help: f.help,
	})
	if err != nil {
		return nil, nil, err
	}
	if f.phases {
		progress.Line("Sandboxes by %s", images.Sandboxes())
	}
	gateway, err := client.New(client.Config{
		Dial: images.Dial, Close: images.Close, InProcess: true, MaxMessageBytes: f.maxMessage(localMaxMessageBytes),
	})
	if err != nil {
		return nil, nil, errors.Join(err, images.Close())
	}
	return gateway, images, nil
}

// addCache makes an evaluator reuse responses from the cache on disk, for the flag --cache. A function runs only if
// the cache lacks its response. If the cache cannot be opened, the evaluator is closed.
func (f *gatewayFlags) addCache(e *evaluator, images runner.Runner) error {
	cache, err := rendercache.Open(images.Fingerprint, e.Images)
	if err != nil {
		return errors.Join(err, e.close())
	}
	end := e.close
	e.Images = cache
	e.close = func() error { return errors.Join(cache.Close(), end()) }
	return nil
}

// addTraces makes an evaluator measure the phases of evaluations if --trace is set. Closing it prints the phases.
func (f *gatewayFlags) addTraces(e *evaluator, gateway *client.Gateway, env Environment) {
	if !f.trace {
		return
	}
	traced, end := &traces{Evaluator: e.Images, gateway: gateway}, e.close
	e.Images = traced
	e.close = func() error {
		width, _ := terminalSize(env.Stderr)
		traced.printSpans(env.errPrinter(), width)
		return end()
	}
}
