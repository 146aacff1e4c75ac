// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// rule is a rule of iptables, without its chain and its target.
type rule struct {
	chain string
	match []string
}

// The ports of the programs.
const (
	wrapperPort, managerPort, resolverPort = "9446", "9448", "9449"
)

func to(port string) rule   { return rule{"OUTPUT", []string{"-p", "tcp", "--dport", port}} }
func into(port string) rule { return rule{"INPUT", []string{"-p", "tcp", "--dport", port}} }

// The networks that a pod-manager can lose.
var (
	fromAPI = []rule{
		{"OUTPUT", []string{"-p", "tcp", "--dport", "443"}},
		{"INPUT", []string{"-p", "tcp", "--sport", "443"}},
	}
	fromPods  = []rule{to(wrapperPort)}
	fromPeers = []rule{into(managerPort), to(resolverPort)}
)

// cut drops packets in the network namespace of a process's pod: the rules end with the pod at the
// latest. It returns what has them pass again.
func cut(ctx context.Context, t *testing.T, p suite.Process, rules []rule) (heal func(), err error) {
	for _, r := range rules {
		if err := r.apply(ctx, p, "--insert"); err != nil {
			return nil, err
		}
	}
	return func() {
		ctx := suite.CleanupContext(t)
		for _, r := range rules {
			err := r.apply(ctx, p, "--delete")
			if _, gone := os.Stat(network(p)); err != nil && gone == nil { // the rules end with the pod
				t.Error(err)
			}
		}
	}, nil
}

// network is the network namespace of a process, while the process is there.
func network(p suite.Process) string { return fmt.Sprintf("/proc/%d/ns/net", p.PID) }

func (r rule) apply(ctx context.Context, p suite.Process, what string) error {
	arguments := append([]string{
		"--net=" + network(p), "iptables", "--wait", what, r.chain,
	}, append(r.match, "--jump", "DROP")...)
	if output, err := exec.CommandContext(ctx, "nsenter", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("change a pod's network: %w: %s", err, output)
	}
	return nil
}
