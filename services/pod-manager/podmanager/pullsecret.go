// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"cmp"
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pullsecret"
)

// pullSecret wraps a cluster so that pods that require the pull secret wait until it exists. It also returns the
// task that maintains the pull secret. If no docker configuration file is configured, it returns the cluster
// unchanged and a task that does nothing.
func (c *Config) pullSecret(
	cluster manager.Cluster, client kubernetes.Interface, send func(pool.Event), frame servermain.Frame,
) (manager.Cluster, serve.Task, error) {
	if c.AuthSecretPath == "" {
		return cluster, func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	keeper, err := pullsecret.New(pullsecret.Config{
		Path: c.AuthSecretPath, Secrets: client.CoreV1().Secrets(c.Namespace),
		Namespace: c.Namespace, Name: cmp.Or(c.PullSecret, DefaultPullSecret), CheckInterval: c.ScanInterval,
		Log: frame.Telemetry.Log, Meter: frame.Telemetry.Meters.Meter("pod-manager/pullsecret"),
	})
	if err != nil {
		return nil, nil, err
	}
	return pullsecret.Guard{Cluster: cluster, Keeper: keeper, Send: send}, keeper.Run, nil
}
