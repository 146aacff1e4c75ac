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

// bridgeSettings is the directory of settings of the kernel module br_netfilter. It is missing without the module.
const bridgeSettings = "/proc/sys/net/bridge"

// FilterBridges makes iptables process traffic between pods on the same bridge, and reports whether this succeeded.
// Without it, a caller of a Service would receive answers from a pod's address. FilterBridges loads the kernel module
// br_netfilter if necessary, and then disables it for the machine's own bridges.
func FilterBridges() (bool, error) {
	if exists(bridgeSettings) {
		return true, nil
	}
	// Ignore the error: if the module is missing, no settings are found below.
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
