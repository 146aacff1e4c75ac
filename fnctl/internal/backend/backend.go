// SPDX-License-Identifier: Apache-2.0

// Package backend selects where functions run, at a gateway or on this machine, by the user's flags. Start with
// backend.go. cluster.go connects to a gateway inside a cluster, containers.go finds a container runtime, phases.go
// shows the phase of a running function, and trace.go measures all phases.
package backend

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
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/forward"
	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/rendercache"
	"github.com/krm-function-runner/function-runner/fnctl/internal/runner"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	"github.com/krm-function-runner/function-runner/libs/config"
)

// DefaultAddress is the address of the gateway (the server that runs functions) if the user sets no address.
const DefaultAddress = "localhost:9445"

const (
	// DefaultTimeout is the default maximum duration of an evaluation.
	DefaultTimeout = 5 * time.Minute
	// DefaultMaxMessageBytes is the default maximum size of a ResourceList at a gateway. Porch and Porch's function
	// runners have the same default.
	DefaultMaxMessageBytes = 6 << 20
	// LocalMaxMessageBytes is the default maximum size of a ResourceList for functions on this machine. It is larger,
	// because the limit of a remote gateway does not apply.
	LocalMaxMessageBytes = 64 << 20
)

// Flags holds the flags that select where functions run, at a gateway or on this machine.
type Flags struct {
	// Address is the gateway's address, as host:port or as a URL.
	Address string
	// Cluster selects a gateway inside a Kubernetes cluster. If it is empty, fnctl connects to Address directly.
	Cluster forward.Cluster
	// Timeout is the maximum duration of an evaluation. Zero means no limit.
	Timeout time.Duration
	// MaxMessageBytes is the maximum size of a ResourceList. Zero means 6 MiB at a gateway, 64 MiB on this machine.
	MaxMessageBytes config.Bytes
	// Phases enables the display of a running function's phase. Trace prints the durations of all phases at the end.
	Phases, Trace bool
	// Local runs functions on this machine. Offline requires Local, and permits only images that were pulled earlier.
	Local, Offline bool
	// Environment contains additional environment variables for functions, as the user wrote them, KEY=VALUE or KEY.
	Environment []string
	// Arguments replace the arguments of images on this machine, for example by --help. A gateway passes no arguments on.
	Arguments []string
	// Containers lists container runtimes that may run functions instead of a gateway. It is ignored if Local is set.
	Containers []string

	cache bool
}

// Address returns the default address of the gateway, from FNCTL_ADDRESS or else localhost:9445.
func Address(env command.Environment) string {
	return cmp.Or(env.LookUp("FNCTL_ADDRESS"), DefaultAddress)
}

// RegisterAddress adds the flags that select a gateway, for commands such as fnctl top that run no function.
func (f *Flags) RegisterAddress(flags *pflag.FlagSet, env command.Environment) {
	flags.StringVar(&f.Address, "address", Address(env),
		"gateway as host:port, or as a URL of http or https; by default FNCTL_ADDRESS")
	f.registerCluster(flags, env)
}

// Register adds all flags for commands that run functions, such as fnctl render.
func (f *Flags) Register(flags *pflag.FlagSet, env command.Environment) {
	f.RegisterAddress(flags, env)
	f.RegisterLocal(flags)
	flags.BoolVar(&f.cache, "cache", false, "with --local: keep on disk what functions return, and run none again whose "+
		"image and input are the same; for functions whose output depends on nothing else")
	f.registerLimits(flags)
	flags.BoolVar(&f.Phases, "phases", command.IsTerminal(env.Stderr),
		"show what functions wait for, such as their pod; by default on terminals")
	flags.BoolVar(&f.Trace, "trace", false, "show where the time of each evaluation went, as a tree of spans")
}

// RegisterLocal adds the flags that make functions run on this machine.
func (f *Flags) RegisterLocal(flags *pflag.FlagSet) {
	flags.BoolVar(&f.Local, "local", false, "run functions on this machine, in sandboxes, without a function runner")
	flags.BoolVar(&f.Offline, "offline", false, "with --local: use images that were pulled before, and call no registry")
}

// registerLimits adds the flags that limit the time and the size of an evaluation.
func (f *Flags) registerLimits(flags *pflag.FlagSet) {
	flags.DurationVar(&f.Timeout, "timeout", DefaultTimeout,
		"longest time for one function, with the start of its pod; 0 for no limit")
	flags.Var(&f.MaxMessageBytes, "max-message-size",
		"largest ResourceList in bytes, each way; by default 6Mi, and 64Mi with --local and for --exec")
}

// Check returns an error for flags that exclude each other, such as --local and --address.
func (f *Flags) Check(flags *pflag.FlagSet) error {
	switch {
	case f.Local && flags.Changed("address"):
		return errors.New("takes --local or --address, not both")
	case f.Local && slices.ContainsFunc(clusterNames, flags.Changed):
		return errors.New("takes --local or --" + strings.Join(clusterNames, ", --") + ", not both")
	case f.cache && !f.Local:
		return errors.New("takes --cache with --local only: a function runner elsewhere has a result cache of its own")
	case f.Offline && !f.Local:
		return errors.New("takes --offline with --local only: a function runner elsewhere has its own images")
	}
	return nil
}

// noGateway is the advice to users who gave no address, if no gateway listens at the default address.
const noGateway = "run functions on this machine with --local, start a function runner here, or give the address " +
	"of one with --address or FNCTL_ADDRESS"

// NewClient returns a client of the gateway. Callers must close the client.
func (f *Flags) NewClient(env command.Environment) (*client.Gateway, error) {
	config, err := f.clientConfig(env)
	if err != nil {
		return nil, err
	}
	return client.New(config)
}

// clientConfig returns the client's configuration. With --namespace, the client connects through kubectl.
func (f *Flags) clientConfig(env command.Environment) (client.Config, error) {
	config := client.Config{Address: f.Address, MaxMessageBytes: f.maxMessage(DefaultMaxMessageBytes)}
	switch {
	case f.Cluster.Namespace != "":
		f.forwardTo(&config)
	case f.Cluster != (forward.Cluster{}):
		return config, errors.New("takes --" + strings.Join(clusterNames[1:], ", --") + " with --namespace only")
	case env.LookUp("FNCTL_ADDRESS") == "" && f.Address == DefaultAddress:
		config.Unreachable = noGateway
	}
	return config, nil
}

// maxMessage returns the value of --max-message-size in bytes, or byDefault if the flag is not set.
func (f *Flags) maxMessage(byDefault int) int { return cmp.Or(int(f.MaxMessageBytes), byDefault) }

// NoInput is an empty ResourceList, the input of a function that only shows its help.
var NoInput = []byte("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n")

// Evaluator runs functions: images at a gateway or on this machine, and programs (--exec) on this machine.
type Evaluator struct {
	local.Evaluator
	Close func() error
}

// Open returns an evaluator that runs images at the gateway, or on this machine with --local. It always runs
// programs (--exec) on this machine. Callers must close the evaluator.
func (f *Flags) Open(ctx context.Context, env command.Environment, progress *ui.Progress) (*Evaluator, error) {
	e := &Evaluator{
		Evaluator: local.Evaluator{
			ImageProgram:   env.ImageProgram,
			Environment:    slices.Concat(env.Environ, env.Variables(f.Environment)),
			MaxOutputBytes: f.maxMessage(LocalMaxMessageBytes),
		},
		Close: func() error { return nil },
	}
	if e.ImageProgram != "" {
		return e, nil
	}
	runtimes := f.Containers
	if f.Local {
		runtimes = ContainerNames(runtime.GOOS, env)
	}
	if len(runtimes) > 0 {
		return e, f.useContainers(e, env, runtimes, progress)
	}
	gateway, images, err := f.connect(ctx, env, progress)
	if err != nil {
		return nil, err
	}
	e.Images = &phases{Gateway: gateway, wanted: f.Phases}
	e.Close = gateway.Close
	f.addTraces(e, gateway, env)
	if f.cache {
		return e, f.addCache(e, images)
	}
	return e, nil
}

// connect returns a client of the gateway. With --local, it starts a runner with a gateway in this process, and also
// returns the runner. Closing the client then stops the runner. Without --local, the runner is nil.
func (f *Flags) connect(ctx context.Context, env command.Environment, progress *ui.Progress) (
	*client.Gateway, runner.Runner, error,
) {
	if !f.Local {
		gateway, err := f.NewClient(env)
		return gateway, nil, err
	}
	images, err := runner.Start(ctx, runner.Config{
		Offline: f.Offline, MaxMessageBytes: f.maxMessage(LocalMaxMessageBytes),
		Environment: env.Variables(f.Environment), Arguments: f.Arguments,
	})
	if err != nil {
		return nil, nil, err
	}
	if f.Phases {
		progress.Line("Sandboxes by %s", images.Sandboxes())
	}
	gateway, err := client.New(client.Config{
		Dial: images.Dial, Close: images.Close, InProcess: true, MaxMessageBytes: f.maxMessage(LocalMaxMessageBytes),
	})
	if err != nil {
		return nil, nil, errors.Join(err, images.Close())
	}
	return gateway, images, nil
}

// addCache makes an evaluator reuse responses from the cache on disk, for the flag --cache. Functions run only if
// the cache lacks their response. If the cache cannot be opened, addCache closes the evaluator.
func (f *Flags) addCache(e *Evaluator, images runner.Runner) error {
	cache, err := rendercache.Open(images.Fingerprint, e.Images)
	if err != nil {
		return errors.Join(err, e.Close())
	}
	end := e.Close
	e.Images = cache
	e.Close = func() error { return errors.Join(cache.Close(), end()) }
	return nil
}

// addTraces makes an evaluator measure the phases of evaluations for --trace, and print them when it is closed.
func (f *Flags) addTraces(e *Evaluator, gateway *client.Gateway, env command.Environment) {
	if !f.Trace {
		return
	}
	traced, end := &traces{Evaluator: e.Images, gateway: gateway}, e.Close
	e.Images = traced
	e.Close = func() error {
		width, _ := command.TerminalSize(env.Stderr)
		traced.printSpans(env.ErrPrinter(), width)
		return end()
	}
}
