// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// JSON is the value of --output for output in JSON.
const JSON = "json"

// TargetArgument returns the directory or file to process, from the argument before "--". The default is ".".
func TargetArgument(cmd *cobra.Command, args []string) string {
	if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
		return "."
	}
	return args[0]
}

// OneTarget returns a check that permits one argument before "--". The parameter what describes the argument in the
// error, such as "DIR, a package".
func OneTarget(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args = args[:dash]
		}
		if len(args) > 1 {
			return UsageError(cmd, errors.New("takes one argument: "+what))
		}
		return nil
	}
}

// CheckChoice returns an error unless the value of a flag is empty or one of the choices.
func CheckChoice(flag, value string, choices ...string) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("takes %s for %s, got %q", strings.Join(choices, " or "), flag, value)
}

// RejectLink returns an error if the output path of a flag is a symbolic link. It also rejects a relative path that
// leads through a link. This is because an untrusted checkout may contain links to any file of the user. Links of the
// system, such as /tmp on macOS and /dev/stdout, are permitted.
func RejectLink(flag, path string) error {
	path = filepath.Clean(path) // Lstat follows a link if the path ends with a slash
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() == fs.ModeSymlink &&
		!slices.Contains([]string{"/", "/dev", "/dev/fd", "/proc/self/fd"}, filepath.Dir(path)) {
		return fmt.Errorf("%s: %s is a link and may lead to any file (remove it, or give the path to which it leads)",
			flag, path)
	}
	if dir := filepath.Dir(path); dir != "." && !filepath.IsAbs(path) {
		return RejectLink(flag, dir)
	}
	return nil // callers report other errors when they write
}

// RegisterImagePrefix adds the flag --image-prefix, whose value is stored in prefix.
func RegisterImagePrefix(flags *pflag.FlagSet, env Environment, prefix *string) {
	flags.StringVar(prefix, "image-prefix", env.LookUp("KPT_IMAGE_PREFIX"),
		"put this before images without a slash; by default KPT_IMAGE_PREFIX, or else the gateway's own")
}
