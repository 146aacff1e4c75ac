// SPDX-License-Identifier: Apache-2.0

package space

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// bridgeSettings exists while the kernel can show iptables the traffic on bridges.
const bridgeSettings = "/proc/sys/net/bridge"

// FilterBridges reports whether the kernel can show iptables the traffic between pods of the same bridge: only then
// do answers come from a Service's address. It loads the kernel's module for that, which most machines have, and
// configures it to leave the machine's own bridges alone.
func FilterBridges() (bool, error) {
	if exists(bridgeSettings) {
		return true, nil
	}
	// The check below shows whether it was loaded.
	_ = exec.Command("modprobe", "br_netfilter").Run()
	settings, err := filepath.Glob(bridgeSettings + "/bridge-nf-call-*")
	if err != nil {
		return false, fmt.Errorf("list the settings of bridges: %w", err)
	}
	for _, path := range settings {
		if err := os.WriteFile(path, []byte("0"), 0o644); err != nil {
			return false, fmt.Errorf("leave the machine's bridges as they were: %w", err)
		}
	}
	return len(settings) > 0, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
