// SPDX-License-Identifier: Apache-2.0

// Package docker contains the command fnctl docker, which kustomize, kpt and skaffold can run instead of docker.
package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/template"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/backend"
	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/version"
)

const dockerHelp = `Docker takes the place of docker, podman and nerdctl for programs that run KRM functions by them,
such as kustomize, kpt and skaffold. 'fnctl docker install DIR' links these names to fnctl.
Functions run on this machine, as with --local, or at the gateway that FNCTL_ADDRESS or FNCTL_NAMESPACE names.
It understands 'run' with the options that these programs pass, and 'version'.

Exit codes: the function's, 125 if no function ran, 127 if its program could not be started.`

const dockerExamples = `  # kustomize, kpt and skaffold run functions by fnctl from now on
  eval "$(fnctl docker install ~/.fnctl/bin)"
  kustomize build --enable-alpha-plugins ./web`

// dockerVersion is the version of docker whose command line fnctl imitates. Programs such as kpt query this version
// before they run functions. kpt requires 20.10.0 or newer.
const dockerVersion = "29.0.0"

// Exit codes of docker, which 'fnctl docker run' returns in the same cases.
const (
	exitNoContainer = 125
	exitNoProgram   = 127
	// exitSignaled is the base of docker's exit code for a function that a signal killed. docker adds the number of
	// the signal, so that the code for SIGKILL is 137.
	exitSignaled = 128
)

// standIn is the advice to users whose docker command line fnctl does not support.
const standIn = "this is fnctl, which runs KRM functions in the place of docker: see fnctl docker --help"

// notPossible returns an error about an unsupported docker command line, with docker's exit code 125 and advice.
func notPossible(err error) error {
	return command.WithCode(exitNoContainer, &client.CallError{Problem: err.Error(), Advice: standIn})
}

// Arguments returns the command line without the program's name. If a link named docker, podman or nerdctl started
// fnctl, Arguments inserts the command docker, so that fnctl replaces the container runtime.
func Arguments(commandLine []string) []string {
	name := strings.TrimSuffix(filepath.Base(commandLine[0]), ".exe")
	if slices.Contains(local.Dockers, name) {
		return append([]string{"docker"}, commandLine[1:]...)
	}
	return commandLine[1:]
}

// NewCommand returns the command fnctl docker.
func NewCommand(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "docker",
		Short:   "Run functions in the place of docker, for kustomize, kpt and skaffold",
		Long:    dockerHelp,
		Example: dockerExamples,
		Version: dockerVersion,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return notPossible(fmt.Errorf("cannot do docker %s", args[0]))
		},
	}
	cmd.SetVersionTemplate("Docker version {{.Version}}, in its place fnctl " + version.String() + "\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return notPossible(fmt.Errorf("%s: %w", strings.TrimPrefix(cmd.CommandPath(), "fnctl "), command.DescribeFlag(err)))
	})
	cmd.AddCommand(newRun(env), newVersion(env), newInstall(env))
	return cmd
}

func newVersion(env command.Environment) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of docker whose command line fnctl understands",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			type program struct{ Version string }
			shown, err := template.New("format").Parse(format + "\n")
			if err == nil {
				err = shown.Execute(env.Stdout, struct{ Client, Server program }{program{dockerVersion}, program{dockerVersion}})
			}
			if err != nil {
				return notPossible(err)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f",
		"Client: fnctl "+version.String()+"\n Version: {{.Client.Version}}", "template of the output")
	return cmd
}

func newInstall(env command.Environment) *cobra.Command {
	return &cobra.Command{
		Use:   "install DIR",
		Short: "Link docker, podman and nerdctl in a directory to fnctl, and print the line that puts it first in PATH",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err == nil {
				err = linkRuntimes(dir)
			}
			if err != nil {
				return err
			}
			env.OutPrinter().Line("export PATH=%q", dir+string(os.PathListSeparator)+"$PATH")
			return nil
		},
	}
}

// linkRuntimes links docker, podman and nerdctl in dir to this program. If dir is first in PATH, other programs
// then start fnctl instead of a container runtime.
func linkRuntimes(dir string) error {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // other users may run programs
		return err
	}
	for _, name := range local.Dockers {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		link := filepath.Join(dir, name)
		if now, err := filepath.EvalSymlinks(link); err == nil && now == program {
			continue
		}
		if err := os.Symlink(program, link); err != nil {
			return fmt.Errorf("install fnctl as %s: %w (choose another directory)", name, err)
		}
	}
	return nil
}

type dockerRun struct {
	env                command.Environment
	interactive        bool
	network, pull      string
	variables, mounts  []string
	remove             bool
	attached, security []string
	user               string
}

func newRun(env command.Environment) *cobra.Command {
	c := &dockerRun{env: env}
	cmd := &cobra.Command{
		Use:   "run [OPTIONS] IMAGE [ARGUMENT...]",
		Short: "Run the function of an image on the ResourceList of standard input",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(args); err != nil {
				return notPossible(fmt.Errorf("docker run: %w", err))
			}
			return c.runImage(cmd.Context(), args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.BoolVarP(&c.interactive, "interactive", "i", false, "pass standard input to the function")
	flags.StringVar(&c.network, "network", "none", "none, or the network of functions that FNR_FUNCTION_NETWORK allows")
	flags.StringVar(&c.pull, "pull", "missing", "never calls no registry for functions that run on this machine")
	flags.StringArrayVarP(&c.variables, "env", "e", nil, "variable of a function that runs on this machine")
	flags.StringArrayVar(&c.mounts, "mount", nil, "not possible")
	const implied = "ignored: sandboxes and function pods have no other way"
	flags.BoolVar(&c.remove, "rm", false, implied)
	flags.StringArrayVarP(&c.attached, "attach", "a", nil, implied)
	flags.StringArrayVar(&c.security, "security-opt", nil, implied)
	flags.StringVarP(&c.user, "user", "u", "", implied)
	return cmd
}

// local reports whether functions run on this machine, not at a gateway.
func (c *dockerRun) local() bool {
	return c.env.LookUp("FNCTL_ADDRESS")+c.env.LookUp("FNCTL_NAMESPACE") == ""
}

// check returns an error for arguments and options of 'docker run' that fnctl does not support.
func (c *dockerRun) check(args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("needs an image")
	case len(args) > 1 && !c.local():
		return fmt.Errorf("cannot pass the argument %q to a gateway (to run the function on this machine, unset "+
			"FNCTL_ADDRESS and FNCTL_NAMESPACE)", args[1])
	case len(args) == 1 && !c.interactive:
		return errors.New("needs -i: a function reads standard input")
	case len(c.mounts) > 0:
		return fmt.Errorf("cannot mount %q: put the files into a ConfigMap", c.mounts[0])
	case c.network != "none" && c.local():
		return backend.CheckNetwork(c.env, args[0])
	}
	return nil
}

// runImage runs the function of an image once, from standard input to standard output. Without input, a function with
// arguments gets a list without resources.
func (c *dockerRun) runImage(ctx context.Context, image string, arguments []string) (err error) {
	if err := c.checkEnvironment(); err != nil {
		return notPossible(err)
	}
	gateway := backend.Flags{
		Address: backend.Address(c.env), Local: c.local(), Offline: c.local() && c.pull == "never",
		MaxMessageBytes: backend.LocalMaxMessageBytes, Environment: c.variables, Arguments: arguments,
	}
	gateway.Cluster.Namespace = c.env.LookUp("FNCTL_NAMESPACE")
	var list []byte
	if c.interactive {
		if list, err = io.ReadAll(c.env.Stdin); err != nil {
			return command.WithCode(exitNoContainer, fmt.Errorf("read standard input: %w", err))
		}
	}
	if len(list) == 0 && len(arguments) > 0 {
		list = backend.NoInput
	}
	evaluator, err := gateway.Open(ctx, c.env, c.env.Progress())
	if err != nil {
		return command.WithCode(exitNoContainer, err)
	}
	defer func() { err = errors.Join(err, evaluator.Close()) }()
	resp, err := evaluator.Evaluate(ctx, pipeline.Request{Image: image, ResourceList: list})
	if failed, ok := errors.AsType[*pipeline.FunctionError](err); ok {
		return c.reportFailure(failed, resp.ResourceList)
	}
	if err != nil {
		return command.WithCode(exitNoContainer, err)
	}
	_, logErr := c.env.Stderr.Write(resp.Log)
	_, err = c.env.Stdout.Write(resp.ResourceList)
	return errors.Join(err, logErr)
}

// impliedVariables lists the variables that kyaml sets for every function. A gateway passes no variables to functions.
// fnctl then rejects the user's variables, but drops the implied variables, because no user set them.
var impliedVariables = []string{"LOG_TO_STDERR", "STRUCTURED_RESULTS"}

// checkEnvironment returns an error for variables of the user if the function runs at a gateway, because gateways pass
// no variables to functions.
func (c *dockerRun) checkEnvironment() error {
	for _, variable := range c.env.Variables(c.variables) {
		if name, _, _ := strings.Cut(variable, "="); !c.local() && !slices.Contains(impliedVariables, name) {
			return fmt.Errorf("cannot pass the variable %s to a gateway: put it into the function's configuration", name)
		}
	}
	return nil
}

// reportFailure writes a failed function's log to standard error and its output to standard output. For a function at a
// gateway, the output contains only the results, because a gateway returns no other output of a failed function. The
// returned error contains docker's exit code.
func (c *dockerRun) reportFailure(failed *pipeline.FunctionError, output []byte) error {
	var code int
	switch failed.Failure.GetReason() {
	case functionrunnerv1.FunctionFailure_REASON_EXITED:
		code = int(failed.Failure.GetExitCode())
	case functionrunnerv1.FunctionFailure_REASON_SIGNALED:
		code = exitSignaled + signalNumber(failed.Failure.GetSignal())
	case functionrunnerv1.FunctionFailure_REASON_UNSPECIFIED: // runners that send no details
		return command.WithCode(command.ExitFunction, errors.New(failed.Message))
	case functionrunnerv1.FunctionFailure_REASON_NOT_STARTED:
		return command.WithCode(exitNoProgram, errors.New(failed.Message))
	default:
		return command.WithCode(exitNoContainer, errors.New(failed.Message))
	}
	stderr := failed.Failure.GetStderr()
	if c.network != "none" {
		stderr += "\nthe gateway gives functions the network only if its FNR_FUNCTION_NETWORK names their repository"
	}
	fmt.Fprintln(c.env.Stderr, strings.TrimSuffix(stderr, "\n"))
	if results := failed.Failure.GetResults(); len(output) == 0 && len(results) > 0 {
		output = encodeResults(results)
	}
	if _, err := c.env.Stdout.Write(output); err != nil {
		return command.WithCode(exitNoContainer, err)
	}
	return command.WithCode(code, nil)
}

// signalNumber returns a signal's number from a description such as "killed". The default is SIGKILL's number.
func signalNumber(name string) int {
	for number := range 64 {
		if syscall.Signal(number).String() == name {
			return number
		}
	}
	return int(syscall.SIGKILL)
}

// encodeResults returns a failed function's results as a ResourceList. It omits items, because callers ignore them.
func encodeResults(results []*functionrunnerv1.Result) []byte {
	list := map[string]any{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": []any{}}
	encoded := make([]any, 0, len(results))
	for _, r := range results {
		var fields map[string]any
		data, _ := protojson.Marshal(r) // never fails for this message
		_ = json.Unmarshal(data, &fields)
		// Both values are JSON. We decode them as YAML, because Go's JSON parser would lose digits of large numbers.
		if field, ok := fields["field"].(map[string]any); ok {
			for _, name := range []string{"currentValue", "proposedValue"} {
				var value any
				if text, ok := field[name].(string); ok && yaml.Unmarshal([]byte(text), &value) == nil {
					field[name] = value
				}
			}
		}
		encoded = append(encoded, fields)
	}
	list["results"] = encoded
	data, _ := yaml.Marshal(list) // never fails for values from JSON
	return data
}
