// SPDX-License-Identifier: Apache-2.0

// Package doctor is the command fnctl doctor, which shows where functions can run.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/fnctl/internal/backend"
	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/runner"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	"github.com/krm-function-runner/function-runner/libs/version"
)

const doctorHelp = `Doctor shows where fnctl can run functions: on this machine, with the launcher of sandboxes and
the command that mends what is missing, or at a gateway; whether the registry of images answers; and versions.

The exit code is 0 if functions can run on this machine or at the gateway, and 2 otherwise.`

const doctorExamples = `  fnctl doctor
  fnctl doctor --registry registry.example:5000 -o json`

// diagnosis is the report of fnctl doctor about the places where functions can run, with versions.
type diagnosis struct {
	Version string `json:"version"`
	System  string `json:"system"`
	Local   struct {
		// Launcher is the name of the first method that started a sandbox on this machine, such as bubblewrap, or the
		// path of a container runtime. It is empty if none works.
		Launcher string            `json:"launcher,omitempty"`
		Tried    []runner.Launcher `json:"tried"`
		Problem  string            `json:"problem,omitempty"`
		// Mend is a shell command that makes sandboxes work on this machine, such as the installation of bubblewrap. It
		// is empty if sandboxes work already, or if no command is known.
		Mend string `json:"mend,omitempty"`
	} `json:"local"`
	Registry probe `json:"registry"`
	Gateway  probe `json:"gateway"`
}

// probe is the result of a test call by fnctl doctor to a registry or to the gateway.
type probe struct {
	Address string `json:"address"`
	Version string `json:"version,omitempty"`
	// Problem is the reason for a failed call. It is empty if the server answered.
	Problem string `json:"problem,omitempty"`
}

const doctorTimeout = 5 * time.Second

// NewCommand returns the command fnctl doctor.
func NewCommand(env command.Environment) *cobra.Command {
	var gateway backend.Flags
	var output, registry string
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Show where functions can run, and how to mend what is missing",
		Long:    doctorHelp,
		Example: doctorExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckChoice("--output", output, command.JSON); err != nil {
				return command.UsageError(cmd, err)
			}
			d := diagnosis{Version: version.String(), System: runtime.GOOS + "/" + runtime.GOARCH}
			d.checkLocal(cmd.Context(), env)
			d.Registry = checkRegistry(cmd.Context(), registry)
			d.Gateway = checkGateway(cmd.Context(), env, gateway)
			d.printReport(env, output == command.JSON)
			if d.Local.Launcher == "" && d.Gateway.Problem != "" {
				return errors.New("functions can run neither on this machine nor at the gateway")
			}
			return nil
		},
	}
	gateway.RegisterAddress(cmd.Flags(), env)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json for JSON")
	cmd.Flags().StringVar(&registry, "registry", "ghcr.io", "registry of images, as HOST or HOST:PORT")
	return cmd
}

// checkLocal finds a working method to run functions on this machine, in containers or in sandboxes.
func (d *diagnosis) checkLocal(ctx context.Context, env command.Environment) {
	if names := backend.ContainerNames(runtime.GOOS, env); len(names) > 0 {
		ctx, cancel := context.WithTimeoutCause(ctx, doctorTimeout, fmt.Errorf("it did not answer within %s", doctorTimeout))
		defer cancel()
		containers, err := local.FindContainers(names...)
		if err == nil {
			containers.Environment = env.Environ
			containers.MaxOutputBytes = backend.LocalMaxMessageBytes
			err = containers.CheckDaemon(ctx)
		}
		if err != nil {
			d.Local.Problem = err.Error()
			return
		}
		d.Local.Launcher = containers.Program
		return
	}
	trials, err := runner.TryLaunchers(ctx)
	if err != nil {
		d.Local.Problem = err.Error()
		return
	}
	d.Local.Tried = trials
	if last := trials[len(trials)-1]; last.Problem == "" {
		d.Local.Launcher = last.Name
	} else {
		d.Local.Problem = trials[0].Problem
	}
	if d.Local.Launcher == "" || d.Local.Launcher == "direct" {
		d.Local.Mend = mendCommand(readSetting, exec.LookPath)
	}
}

// namespaceSettings lists the kernel settings that can forbid user namespaces, which sandboxes require. Each entry
// contains a value that forbids them, and a value that permits them.
var namespaceSettings = []struct{ name, refused, permitted string }{
	{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"},
	{"kernel.unprivileged_userns_clone", "0", "1"},
	{"user.max_user_namespaces", "0", "15000"},
}

// readSetting returns the value of a kernel setting. It is empty if the kernel lacks the setting.
func readSetting(name string) string {
	value, _ := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	return strings.TrimSpace(string(value))
}

// mendCommand returns a shell command that makes sandboxes work on this machine. The command permits user
// namespaces and installs bubblewrap. It is empty if nothing is missing, or if no command is known.
func mendCommand(setting func(name string) string, lookPath func(program string) (string, error)) string {
	var commands []string
	for _, s := range namespaceSettings {
		if setting(s.name) == s.refused {
			commands = append(commands, "sudo sysctl -w "+s.name+"="+s.permitted)
		}
	}
	if _, err := lookPath("bwrap"); err != nil {
		for _, manager := range []struct{ program, install string }{
			{"apt-get", "sudo apt-get install bubblewrap"},
			{"dnf", "sudo dnf install bubblewrap"},
			{"apk", "sudo apk add bubblewrap"},
			{"pacman", "sudo pacman -S bubblewrap"},
		} {
			if _, err := lookPath(manager.program); err == nil {
				commands = append(commands, manager.install)
				break
			}
		}
	}
	return strings.Join(commands, " && ")
}

// checkRegistry checks whether this machine reaches a registry's API. Every HTTP response counts as success,
// because most registries reject calls without a token.
func checkRegistry(ctx context.Context, host string) probe {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	found := probe{Address: host}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/v2/", nil)
	if err == nil {
		var resp *http.Response
		if resp, err = http.DefaultClient.Do(req); err == nil {
			err = resp.Body.Close()
		}
	}
	if err != nil {
		found.Problem = err.Error()
	}
	return found
}

// checkGateway checks whether the gateway answers, and returns its version.
func checkGateway(ctx context.Context, env command.Environment, flags backend.Flags) probe {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	found := probe{Address: flags.Address}
	if flags.Cluster.Namespace != "" {
		found.Address = "namespace " + flags.Cluster.Namespace
	}
	gateway, err := flags.NewClient(env)
	if err == nil {
		defer gateway.Close()
		status, statusErr := gateway.Status(ctx)
		found.Version = status.GetVersion()
		if !client.IsUnimplemented(statusErr) { // older gateways lack the status service
			err = statusErr
		}
	}
	if err != nil {
		found.Problem = err.Error()
	}
	return found
}

func (d *diagnosis) printReport(env command.Environment, inJSON bool) {
	out := env.OutPrinter()
	if inJSON {
		out.Line("%s", ui.ValueJSON(d))
		return
	}
	where := "sandboxes by " + d.Local.Launcher
	switch {
	case d.Local.Launcher == "":
		where = d.Local.Problem
	case d.Local.Tried == nil:
		where = "containers by " + d.Local.Launcher
	case d.Local.Launcher == "direct":
		where = "static executables without namespaces, confined by Landlock and seccomp (launcher direct)"
	}
	out.Line("fnctl     %s, %s", d.Version, d.System)
	out.Line("--local   %s %s", checkMark(d.Local.Launcher != ""), ui.OneLine(where))
	for _, trial := range d.Local.Tried {
		if trial.Problem != "" && d.Local.Launcher != "" {
			out.Line("            not by %s: %s", trial.Name, ui.Printable(trial.Problem))
		}
	}
	if d.Local.Mend != "" {
		out.Line("            to mend it: %s", d.Local.Mend)
	}
	out.Line("registry  %s", d.Registry.describeAnswer())
	out.Line("gateway   %s", d.Gateway.describeAnswer())
}

// describeAnswer returns the version of a server, or the reason for a failed call.
func (p probe) describeAnswer() string {
	answer := cmp.Or(p.Problem, strings.TrimSpace("answers "+p.Version))
	return checkMark(p.Problem == "") + " " + p.Address + ": " + ui.Printable(answer)
}

// checkMark returns the symbol of a check in the report, a tick if it passed and a cross if it failed.
func checkMark(works bool) string {
	if works {
		return "✓"
	}
	return "✗"
}
