// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"os/exec"
)

// Cluster contains the values of kubectl's flags. Empty values mean kubectl's defaults.
type Cluster struct{ Namespace, Context, Kubeconfig string }

// args returns the arguments of a kubectl command.
func (c Cluster) args(rest ...string) []string {
	var args []string
	for flag, value := range map[string]string{
		"context": c.Context, "kubeconfig": c.Kubeconfig, "namespace": c.Namespace,
	} {
		if value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	return append(args, rest...)
}

// withAdvice adds the remedy to the error of a program that did not start.
func withAdvice(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: install kubectl, or leave --namespace out and give the gateway's address with --address", err)
	}
	return err
}
