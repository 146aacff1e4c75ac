package space

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// bridgeSettings is there while the kernel can show iptables what goes over bridges.
const bridgeSettings = "/proc/sys/net/bridge"

// FilterBridges says whether the kernel can show iptables what pods of one bridge send
// each other: only then answers to a Service's address come from it. The kernel's module
// for that, which most machines have, is loaded, and told to leave the bridges alone that
// the machine has.
func FilterBridges() (bool, error) {
	if exists(bridgeSettings) {
		return true, nil
	}
	// Whether it could be loaded shows in a moment.
	_ = exec.Command("modprobe", "br_netfilter").Run()
	settings, err := filepath.Glob(bridgeSettings + "/bridge-nf-call-*")
	if err != nil {
		return false, fmt.Errorf("listing the settings of bridges: %w", err)
	}
	for _, path := range settings {
		if err := os.WriteFile(path, []byte("0"), 0o644); err != nil {
			return false, fmt.Errorf("leaving the machine's bridges as they were: %w", err)
		}
	}
	return len(settings) > 0, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
