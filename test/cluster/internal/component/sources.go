// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Sources returns a component with the repository's files at a commit. The build fetches the commit if the clone does
// not contain it.
func Sources(root, commit string) Component {
	return Component{
		Name:    "sources",
		Version: commit,
		Build: func(ctx context.Context, dir string) error {
			if err := runGit(ctx, root, "cat-file", "-e", commit+"^{commit}"); err != nil {
				if err := runGit(ctx, root, "fetch", "--quiet", "--depth=1", "origin", commit); err != nil {
					return err
				}
			}
			archive := filepath.Join(dir, "sources.tar")
			if err := runGit(ctx, root, "archive", "--output="+archive, commit); err != nil {
				return err
			}
			if output, err := exec.CommandContext(ctx, "tar", "--extract", "--directory="+dir,
				"--file="+archive).CombinedOutput(); err != nil {
				return fmt.Errorf("unpack the sources: %w\n%s", err, output)
			}
			return os.Remove(archive)
		},
	}
}

func runGit(ctx context.Context, root string, args ...string) error {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, output)
	}
	return nil
}
