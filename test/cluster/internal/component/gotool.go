// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// stripped contains linker flags that omit symbols and debug information.
const stripped = "-s -w"

// builds contains environment variables for building the cluster's programs. GOGC is high, so that the compiler spends
// less time on garbage collection. The higher memory usage is acceptable, because the compiler runs only briefly.
var builds = []string{"GOWORK=off", "CGO_ENABLED=0", "GOGC=400"}

// goTool runs the go command in dir.
func goTool(ctx context.Context, dir string, env []string, args ...string) error {
	_, err := goOutput(ctx, dir, env, args...)
	return err
}

func goOutput(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = slices.Concat(command.Environ(), builds, env)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, lastLines(stderr.String(), 20))
	}
	return stdout.Bytes(), nil
}

// module contains fields of the output of `go mod download -json`.
type module struct {
	GoMod string
	Dir   string
}

func downloadModule(ctx context.Context, path, version string, env ...string) (module, error) {
	out, err := goOutput(ctx, os.TempDir(), env, "mod", "download", "-json", path+"@"+version)
	if err != nil {
		return module{}, err
	}
	var m module
	if err := json.Unmarshal(out, &m); err != nil {
		return module{}, fmt.Errorf("read go's description of module %s: %w", path, err)
	}
	return m, nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
