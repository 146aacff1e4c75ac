// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"os/exec"
)

// Cluster says where kubectl goes, with its flags; empty for what kubectl uses then.
type Cluster struct{ Namespace, Context, Kubeconfig string }

// args are the arguments of a call of kubectl.
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

// withAdvice adds to the error of a program that cannot be started what to do about it.
func withAdvice(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: install kubectl, or leave --namespace out and give the gateway's address with --address", err)
	}
	return err
}
