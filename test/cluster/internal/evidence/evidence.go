// SPDX-License-Identifier: Apache-2.0

// Package evidence saves logs, objects and the state of processes, for the analysis of a failed cluster. The
// cluster may be only partly started.
package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/boot"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/cgroup"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/space"
	"github.com/krm-function-runner/function-runner/test/internal/dump"
)

const (
	// collectTimeout is the timeout of the whole collection. Without it, a user could wait for a long time, because a
	// broken cluster may not respond.
	collectTimeout = time.Minute
	// apiTimeout is the timeout of each API request. It is short because the API server may be the broken component.
	apiTimeout = 5 * time.Second
)

// Collect replaces the files in dir by the logs, objects and machine state of a cluster. The machine state covers
// processes, control groups, mounts and the network. The error lists the parts that could not be collected.
func Collect(ctx context.Context, l layout.Layout, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	for _, name := range []string{"logs", "objects"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("keep evidence: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep evidence: %w", err)
	}
	groups, err := cgroup.Groups(l.Cgroup())
	err = errors.Join(err,
		copyTree(l.Logs(), filepath.Join(dir, "logs")),
		copyFile(l.Path("components.json"), filepath.Join(dir, "components.json")),
		write(filepath.Join(dir, "cgroups.txt"), groupLines(groups)),
	)
	pids := cgroup.Processes(groups)
	if len(pids) == 0 {
		return errors.Join(err, errors.New("none of the cluster's processes runs"))
	}
	return errors.Join(err,
		write(filepath.Join(dir, "processes.txt"), processLines(pids)),
		copyFile(fmt.Sprintf("/proc/%d/mountinfo", pids[0]), filepath.Join(dir, "mounts.txt")),
		network(ctx, pids[0], filepath.Join(dir, "network.txt")),
		objects(ctx, l, pids[0], filepath.Join(dir, "objects")),
	)
}

// objects writes the API server's objects into dir. It connects in the network namespace of process pid.
func objects(ctx context.Context, l layout.Layout, pid int, dir string) error {
	config, err := boot.Access(l, space.Dialer{PID: pid})
	if err != nil {
		return err
	}
	config.Timeout = apiTimeout
	config.WarningHandler = rest.NoWarnings{} // ignore warnings about deprecated kinds
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of cluster %s: %w", l.Name, err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of cluster %s: %w", l.Name, err)
	}
	return dump.Cluster{Kinds: kinds, Objects: client}.Namespace(ctx, metav1.NamespaceAll, dir)
}
