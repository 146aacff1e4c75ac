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

// bridgeSettings is the directory of br_netfilter's settings. It exists only if this kernel module is loaded.
const bridgeSettings = "/proc/sys/net/bridge"

// FilterBridges makes iptables process traffic between pods on the same bridge, and reports whether this succeeded.
// Without iptables, a caller of a Service would receive answers from a pod's address instead of the Service's address.
// FilterBridges loads the kernel module br_netfilter if necessary, and then disables it for the machine's own bridges.
func FilterBridges() (bool, error) {
	if exists(bridgeSettings) {
		return true, nil
	}
	// Ignore the error of modprobe. If the module is missing, the directory contains no settings, and the result is false.
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
