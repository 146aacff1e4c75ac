// SPDX-License-Identifier: Apache-2.0

// Package evidence stores logs and objects that explain the state of a cluster, even of a partly started cluster.
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
	// collectTimeout bounds the whole collection: the cluster is broken, and a user waits.
	collectTimeout = time.Minute
	// apiTimeout bounds each answer of an API server, which may be the broken component.
	apiTimeout = 5 * time.Second
)

// Collect fills a directory: logs has those of components and pods, objects the API server's objects, and the files
// next to them describe processes, control groups, mounts and network. The error lists the missing parts. The files
// of an earlier call are replaced.
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

// objects keeps the objects of the API server, which it calls in the network of a process.
func objects(ctx context.Context, l layout.Layout, pid int, dir string) error {
	config, err := boot.Access(l, space.Dialer{PID: pid})
	if err != nil {
		return err
	}
	config.Timeout = apiTimeout
	config.WarningHandler = rest.NoWarnings{} // warnings about deprecated kinds
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
