// SPDX-License-Identifier: Apache-2.0

package space

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// networkSettings are the kernel settings of the network. Bridge settings may be missing, see [FilterBridges].
var networkSettings = map[string]string{
	"net/ipv4/ip_forward":                "1",
	"net/bridge/bridge-nf-call-iptables": "1",
}

// connectNetwork creates a bridge with the node's addresses in the network namespace, and adds a default route over the
// bridge. The bridge is not connected to the machine, so that no traffic leaves the namespace.
func connectNetwork() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("start the loopback interface: %w", err)
	}
	if err := addNode(); err != nil {
		return fmt.Errorf("make the node's interface %s: %w", layout.Bridge, err)
	}
	for name, value := range networkSettings {
		path := "/proc/sys/" + name
		if !exists(path) && filepath.Dir(path) == bridgeSettings {
			continue
		}
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

func addNode() error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: layout.Bridge}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return err
	}
	for _, address := range []string{layout.NodeAddress, layout.AliasAddress} {
		subnet := net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(layout.NodePrefix, 32)}
		if err := netlink.AddrAdd(bridge, &netlink.Addr{IPNet: &subnet}); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return err
	}
	everywhere := net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	return netlink.RouteAdd(&netlink.Route{
		LinkIndex: bridge.Attrs().Index,
		Dst:       &everywhere,
		Src:       net.ParseIP(layout.NodeAddress),
		Scope:     netlink.SCOPE_LINK,
	})
}
