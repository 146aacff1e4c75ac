// SPDX-License-Identifier: Apache-2.0

// Command downloads makes the archives of a release: fnctl and function-runner for each platform, with
// checksums.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/krm-function-runner/function-runner/build/images/downloads"
	"github.com/krm-function-runner/function-runner/build/images/internal/command"
)

func main() { command.Run("downloads", run) }

// run makes the archives that the command line describes.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("downloads", flag.ContinueOnError)
	root := flags.String("root", ".", "root of the repository")
	version := flags.String("version", "", "version that the programs print, such as v0.1.0")
	modified := flags.Int64("time", 0, "time of all files, in seconds since 1970: that of the commit")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: downloads -version VERSION [FLAG]... DIRECTORY")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *version == "" {
		return errors.New("name the version, as -version v0.1.0, and the directory of the archives")
	}
	from, err := filepath.Abs(*root)
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	if err := os.MkdirAll(flags.Arg(0), 0o755); err != nil { //nolint:gosec // it is published
		return fmt.Errorf("make the directory of the archives: %w", err)
	}
	maker := downloads.Maker{
		Root: from, Env: os.Environ(), Version: *version, Modified: time.Unix(*modified, 0), Out: flags.Arg(0),
	}
	return maker.Make(ctx, downloads.Programs())
}
