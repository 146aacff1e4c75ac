// Package debian installs the Debian packages a cluster needs, and sees to it
// that none of them starts a service.
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

// Packages are what a cluster needs from Debian.
var Packages = []string{
	"busybox-static", "conntrack", "containernetworking-plugins", "docker-registry",
	"etcd-server", "iproute2", "iptables", "nodejs", "runc",
}

// Install installs those of the packages that are missing. It tells log what it
// installs; with nothing missing it changes nothing.
func Install(ctx context.Context, log io.Writer, packages []string) (err error) {
	missing, err := missing(ctx, packages)
	if err != nil || len(missing) == 0 {
		return err
	}
	fmt.Fprintf(log, "installing Debian packages: %s\n", strings.Join(missing, " "))
	policy, err := denyServices()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, policy.restore()) }()
	if err := apt(ctx, "update"); err != nil {
		return err
	}
	return apt(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...)
}

// missing asks for all packages that are installed, because asking for one that
// is not known is an error to dpkg-query.
func missing(ctx context.Context, packages []string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package}\n").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the installed Debian packages: %w", err)
	}
	installed := strings.Split(string(out), "\n")
	return slices.DeleteFunc(slices.Clone(packages), func(name string) bool {
		return slices.Contains(installed, "installed "+name)
	}), nil
}

func apt(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "apt-get", args...)
	// needrestart, where it is installed, would restart services that run.
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_MODE=l", "NEEDRESTART_SUSPEND=1")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
