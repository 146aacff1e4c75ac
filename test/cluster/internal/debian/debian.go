// SPDX-License-Identifier: Apache-2.0

// Package debian installs the Debian packages that a cluster needs, without starting their services.
package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Packages lists the Debian packages that a cluster needs.
var Packages = []string{
	"busybox-static", "conntrack", "containernetworking-plugins", "docker-registry",
	"etcd-server", "iproute2", "iptables", "nodejs", "runc",
}

// Install installs the packages that are missing, and logs their names.
func Install(ctx context.Context, log io.Writer, packages []string) (err error) {
	missing, err := missingPackages(ctx, packages)
	if err != nil || len(missing) == 0 {
		return err
	}
	fmt.Fprintf(log, "installing Debian packages: %s\n", strings.Join(missing, " "))
	policy, err := denyServices()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, policy.restore()) }()
	if err := runApt(ctx, "update"); err != nil {
		return err
	}
	return runApt(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...)
}

// missingPackages returns the packages that are not installed. It queries the list of all installed packages. This is
// because a query for specific packages fails if dpkg-query does not know a package.
func missingPackages(ctx context.Context, packages []string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat",
		"${db:Status-Status} ${Package}\n").Output()
	if err != nil {
		return nil, fmt.Errorf("list the installed Debian packages: %w", err)
	}
	installed := strings.Split(string(out), "\n")
	return slices.DeleteFunc(slices.Clone(packages), func(name string) bool {
		return slices.Contains(installed, "installed "+name)
	}), nil
}

func runApt(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "apt-get", args...)
	// Prevent needrestart from restarting services, if it is installed.
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_MODE=l", "NEEDRESTART_SUSPEND=1")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
