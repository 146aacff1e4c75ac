// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/boot"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/config"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/space"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

// startCluster starts a cluster and waits until it is ready. It saves the state and the configuration's revision.
func (o *options) startCluster(ctx context.Context, log io.Writer, l layout.Layout, programs config.Programs,
	revision string,
) error {
	start := time.Now()
	running, command, err := o.launchSupervisor(l, programs)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// The first process runs as long as the cluster. If it exits, the cluster has failed, and waiting is useless.
	go func() { stop(fmt.Errorf("its first process ended: %w", command.Wait())) }()
	if err := o.fillRegistries(ctx, log, l, running); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	running.Ready = true
	running.Config = revision
	if err := state.Save(l, running); err != nil {
		return err
	}
	fmt.Fprintf(log, "cluster %s is ready after %.1fs: KUBECONFIG=%s\n", l.Name, time.Since(start).Seconds(),
		l.Kubeconfig())
	return nil
}

// fillRegistries pushes images to a new cluster's registries, and concurrently waits until the cluster can run pods.
func (o *options) fillRegistries(ctx context.Context, log io.Writer, l layout.Layout, running state.State) error {
	client, err := boot.Client(l, space.Dialer{PID: running.Init.PID})
	if err != nil {
		return err
	}
	steps, ctx := errgroup.WithContext(ctx)
	images := make(chan struct{})
	steps.Go(func() error {
		return o.pushImages(ctx, log, l, running, true, func() { close(images) })
	})
	steps.Go(func() error { return boot.Wait(ctx, log, client, images) })
	return steps.Wait()
}

// launchSupervisor configures the cluster and starts its first process, which starts all programs.
func (o *options) launchSupervisor(l layout.Layout, programs config.Programs) (state.State, *exec.Cmd, error) {
	filtered, err := space.FilterBridges()
	if err != nil {
		return state.State{}, nil, err
	}
	secrets := config.NewSecrets()
	if err := config.Write(l, secrets, filtered); err != nil {
		return state.State{}, nil, err
	}
	if err := state.WriteJSON(specsFile(l), config.Components(l, programs)); err != nil {
		return state.State{}, nil, fmt.Errorf("write the list of components: %w", err)
	}
	command, err := o.startSupervisor(l, programs)
	if err != nil {
		return state.State{}, nil, err
	}
	running := state.State{Path: programs.Path(), RegistryPassword: secrets.RegistryPassword()}
	if running.Init, err = state.Find(command.Process.Pid); err != nil {
		return state.State{}, nil, err
	}
	return running, command, saveState(l, running)
}

// startSupervisor runs `cluster init` as the first process of new namespaces. This process starts the supervisor of
// the cluster's programs.
func (o *options) startSupervisor(l layout.Layout, programs config.Programs) (*exec.Cmd, error) {
	log, err := os.Create(l.LogFile("supervisor"))
	if err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	defer log.Close()
	command := space.Command("/proc/self/exe", append([]string{"init", "--name", l.Name}, o.keptDirectories()...)...)
	// GOGC applies to all programs of the cluster. Less garbage collection saves a tenth of the processor time. The
	// higher memory usage is acceptable, because clusters are short-lived.
	command.Env = []string{"PATH=" + programs.Path(), "HOME=/root", "GOGC=400"}
	command.Dir = "/"
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the supervisor in new namespaces: %w", err)
	}
	return command, nil
}

// keptDirectories returns the flags of `cluster init` that keep directories visible in the cluster. These directories
// contain the cached programs, the sources and Go's caches.
func (o *options) keptDirectories() []string {
	dirs := []string{o.cache, o.root}
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "GOPATH", "GOMODCACHE", "GOCACHE", "TMPDIR"} {
		dirs = append(dirs, os.Getenv(name))
	}
	var flags []string
	for _, dir := range dirs {
		if absolute, err := filepath.Abs(dir); err == nil && dir != "" {
			flags = append(flags, "--keep", absolute)
		}
	}
	return flags
}

// saveState writes the state file of the cluster, and the description of the cluster for tests.
func saveState(l layout.Layout, running state.State) error {
	if err := state.WriteJSON(infoFile(l), describeCluster(l, running)); err != nil {
		return fmt.Errorf("describe cluster %s: %w", l.Name, err)
	}
	return state.Save(l, running)
}
