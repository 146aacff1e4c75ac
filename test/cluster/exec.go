// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/test/bed"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/space"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

func execCommand(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "exec -- COMMAND [ARGUMENT...]",
		Short: "Run a command in the cluster's namespaces, with KUBECONFIG and kubectl",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, running, err := o.running()
			if err != nil {
				return err
			}
			return enterCluster(l, running, args)
		},
	}
	command.Flags().SetInterspersed(false) // flags after COMMAND belong to COMMAND
	return command
}

// running returns the file paths and state of a cluster. It fails if the user is not root or the cluster is not up.
func (o *options) running() (layout.Layout, state.State, error) {
	if err := needRoot(); err != nil {
		return layout.Layout{}, state.State{}, err
	}
	l, err := o.layout()
	if err != nil {
		return layout.Layout{}, state.State{}, err
	}
	running, err := state.Load(l)
	if err != nil {
		return layout.Layout{}, state.State{}, err
	}
	if !running.Init.Alive() {
		return layout.Layout{}, state.State{}, fmt.Errorf("cluster %s is dead: bring it up again", l.Name)
	}
	return l, running, nil
}

// suppliedCluster returns the file paths and state of a running cluster, for commands that build images. It fails if
// the cluster is not up or the sources of the images are missing.
func (o *options) suppliedCluster() (layout.Layout, state.State, error) {
	if err := o.needSources(); err != nil {
		return layout.Layout{}, state.State{}, err
	}
	return o.running()
}

// enterCluster replaces this process by a command in the cluster's namespaces. It returns only if it fails.
func enterCluster(l layout.Layout, running state.State, args []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	command := space.Enter(running.Init.PID, dir, args...)
	program, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("find a program to enter namespaces: %w", err)
	}
	if err := unix.Exec(program, command, insideEnvironment(l, running)); err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}

// insideEnvironment returns the environment for commands in the cluster's namespaces. It removes the variables that
// configure proxies, because commands in the cluster's network can neither reach nor need a proxy.
func insideEnvironment(l layout.Layout, running state.State) []string {
	command := exec.Cmd{Env: append(slices.DeleteFunc(os.Environ(), namesProxy),
		"PATH="+running.Path+":"+os.Getenv("PATH"),
		"KUBECONFIG="+l.Kubeconfig(),
		bed.InfoVariable+"="+infoFile(l),
	)}
	return command.Environ() // removes duplicate variables
}

// namesProxy reports whether an environment variable, in the form NAME=VALUE, configures a proxy.
func namesProxy(variable string) bool {
	name, _, _ := strings.Cut(strings.ToUpper(variable), "=")
	return slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}, name)
}
