// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/component"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/config"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/debian"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/filelock"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/teardown"
)

func upCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up; build first what is not built yet",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.up(command.Context(), command.ErrOrStderr())
		},
	}
}

// up starts the cluster, unless a ready cluster with the same configuration already runs.
func (o *options) up(ctx context.Context, log io.Writer) error {
	if err := needRoot(); err != nil {
		return err
	}
	if err := o.needSources(); err != nil {
		return err
	}
	l, unlock, err := o.lockCluster()
	if err != nil {
		return err
	}
	defer unlock()
	revision, err := config.Revision()
	if err != nil {
		return err
	}
	if isUsable(l, revision) {
		fmt.Fprintf(log, "cluster %s is up: KUBECONFIG=%s\n", l.Name, l.Kubeconfig())
		return nil
	}
	return o.replaceCluster(ctx, log, l, revision)
}

func (o *options) replaceCluster(ctx context.Context, log io.Writer, l layout.Layout, revision string) error {
	if err := teardown.Remove(ctx, l); err != nil {
		return err
	}
	programs, err := o.buildPrograms(ctx, log)
	if err != nil {
		return err
	}
	if err := o.startCluster(ctx, log, l, programs, revision); err != nil {
		// Collect logs and objects even if the user has cancelled the command, because they show why the start was slow.
		collectEvidence(context.WithoutCancel(ctx), log, l, o.evidenceDir(l))
		return fmt.Errorf("cluster %s did not come up: %w", l.Name, err)
	}
	return nil
}

// isUsable reports whether the cluster is ready and has the given revision. It also checks that important files still
// exist, because a user may have removed a part of the cluster's directory.
func isUsable(l layout.Layout, revision string) bool {
	running, err := state.Load(l)
	for _, path := range []string{l.Kubeconfig(), infoFile(l)} {
		if err == nil {
			_, err = os.Stat(path)
		}
	}
	return err == nil && running.Ready && running.Config == revision && running.Init.Alive()
}

// lockCluster waits until no other command changes the cluster, and returns the cluster's layout. The caller must
// call unlock.
func (o *options) lockCluster() (l layout.Layout, unlock func(), err error) {
	if l, err = o.layout(); err != nil {
		return l, nil, err
	}
	unlock, err = filelock.Acquire(o.cache + "/" + l.Name + ".lock")
	return l, unlock, err
}

// buildPrograms installs the Debian packages and builds the programs of a cluster. It skips packages and programs that
// already exist.
func (o *options) buildPrograms(ctx context.Context, log io.Writer) (config.Programs, error) {
	if err := o.installPackages(ctx, log); err != nil {
		return config.Programs{}, err
	}
	var programs config.Programs
	for _, wanted := range []struct {
		component component.Component
		dir       *string
	}{
		{component.Containerd(), &programs.Containerd},
		{component.CoreDNS(), &programs.CoreDNS},
		{component.Kubernetes(), &programs.Kubernetes},
	} {
		dir, err := o.store().Get(ctx, wanted.component)
		if err != nil {
			return config.Programs{}, err
		}
		*wanted.dir = dir
	}
	return programs, nil
}

// installPackages installs the Debian packages. It holds a lock, because apt-get fails while another apt-get runs.
func (o *options) installPackages(ctx context.Context, log io.Writer) error {
	unlock, err := filelock.Acquire(o.cache + "/debian.lock")
	if err != nil {
		return err
	}
	defer unlock()
	return debian.Install(ctx, log, debian.Packages)
}
