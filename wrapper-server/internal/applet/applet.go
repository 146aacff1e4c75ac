// SPDX-License-Identifier: Apache-2.0

// Package applet contains the small command-line tools in the wrapper server's binary: cp, grpc-health-probe and
// "wrapper-server install". Pod templates copied from Porch's documentation call cp and grpc-health-probe by these
// names, and our image contains no other programs.
package applet

import (
	"fmt"
	"os"
	"path/filepath"
)

// Applet is a small tool in the wrapper server's binary. args are the tool's arguments. It returns the exit code.
type Applet func(args []string) int

// Find returns the applet that a command line calls, and the applet's arguments. If the command line calls the
// wrapper server itself, the applet is nil.
func Find(argv []string) (applet Applet, args []string) {
	switch filepath.Base(argv[0]) {
	case "cp":
		return Copy, argv[1:]
	case "grpc-health-probe", "grpc_health_probe":
		return Probe, argv[1:]
	}
	if len(argv) > 1 && argv[1] == "install" {
		return Install, argv[2:]
	}
	return nil, nil
}

// complain prints the name of the failed applet and an error message to stderr.
func complain(name, format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, "%s: %s\n", name, fmt.Sprintf(format, args...))
}
