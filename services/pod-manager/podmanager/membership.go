// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/membership"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// membership returns a Keeper, which divides the functions among the running replicas. The argument address is the
// address where gateways reach this replica. It is empty if callers are in the same process. The callback receives an
// event each time the owners of functions change.
func (c *Config) membership(
	client kubernetes.Interface, clock *kubeclient.Clock, replica, address string, changed func(pool.Event),
	frame servermain.Frame,
) *membership.Keeper {
	return membership.New(membership.Config{
		Leases: client.CoordinationV1().Leases(c.Namespace), Replica: replica, Address: address, Now: clock.Now,
		Starting: "this pod-manager does not serve yet",
		Changed:  func(o membership.Owners) { changed(o.Event()) },
		Log:      frame.Telemetry.Log, Meter: frame.Telemetry.Meters.Meter("pod-manager/membership"),
	})
}

// after returns a task that waits until the channel is closed, and then calls the function.
func after(signal <-chan struct{}, do func()) serve.Task {
	return func(ctx context.Context) error {
		select {
		case <-signal:
			do()
		case <-ctx.Done():
		}
		return nil
	}
}

// replicaAddress returns the address where gateways reach this replica, as host:port.
func (c *Config) replicaAddress() (string, error) {
	_, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return "", fmt.Errorf("read FNR_ADDRESS: %w", err)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("find this replica's address: %w", err)
	}
	return net.JoinHostPort(ownAddress(addresses), port), nil
}

// ownAddress returns this machine's address that other machines can likely reach. Like gateways, it prefers IPv4.
func ownAddress(addresses []net.Addr) string {
	var found netip.Addr
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		ip := prefix.Addr().Unmap()
		usable := !ip.IsLoopback() && !ip.IsLinkLocalUnicast()
		if usable && (!found.IsValid() || (ip.Is4() && !found.Is4())) {
			found = ip
		}
	}
	if !found.IsValid() {
		return "127.0.0.1"
	}
	return found.String()
}
