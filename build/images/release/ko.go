// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Ko configures the builds of this project's container images with the tool ko.
type Ko struct {
	// Command returns a command line that runs ko in the directory dir. The command must have access to the registry.
	Command func(dir string, args ...string) []string
	// Env is the environment of ko.
	Env []string
	// Root is the repository's root.
	Root string
	// Insecure allows a registry without TLS.
	Insecure bool
	// Offline is true if ko can reach the registry but no Go module proxy. All modules must then be in the module cache,
	// for example from an earlier build of the program.
	Offline bool
}

// KoVersion is the version of ko that builds the images.
const KoVersion = "v0.19.1"

// GoRunKo returns a command line that runs ko in the directory dir. It uses "go run", which builds ko at the first
// call and caches the result. The directory dir must be in the Go module of the program that ko builds.
func GoRunKo(dir string, args ...string) []string {
	return append([]string{"env", "--chdir=" + dir, "go", "run", "github.com/google/ko@" + KoVersion}, args...)
}

// Target describes an image that ko builds, with its repository, base image, tags and labels.
type Target struct {
	Repository, Base string
	Tags             []string
	Labels           map[string]string
	// SBOM is true if ko also pushes a list of the program's modules (SPDX) to the image's repository.
	SBOM bool
}

// arguments returns ko's command-line arguments for building the target.
func (t Target) arguments() []string {
	sbom := "none"
	if t.SBOM {
		sbom = "spdx"
	}
	args := []string{"build", "--bare", "--sbom=" + sbom, "--tags=" + strings.Join(t.Tags, ",")}
	for _, label := range slices.Sorted(maps.Keys(t.Labels)) {
		args = append(args, "--image-label="+label+"="+t.Labels[label])
	}
	return args
}

// Build builds the image of the program with ko, and pushes it to the target's repository.
func (k Ko) Build(ctx context.Context, p Program, to Target) error {
	args := to.arguments()
	if k.Insecure {
		args = append(args, "--insecure-registry")
	}
	line := k.Command(filepath.Join(k.Root, p.Module), append(args, p.Package)...)
	command := exec.CommandContext(ctx, line[0], line[1:]...)
	command.Env = k.environmentOf(to)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("build the image of %s with ko: %w\n%s", p.Name, err, output.String())
	}
	return nil
}

// toolexec matches the flag -toolexec in GOFLAGS. make passes it to give the compiler more memory, but ko rejects it.
var toolexec = regexp.MustCompile(`'-toolexec=[^']*'`)

func (k Ko) environmentOf(to Target) []string {
	env := slices.Concat(k.Env, []string{
		"KO_DOCKER_REPO=" + to.Repository,
		"KO_DEFAULTBASEIMAGE=" + to.Base,
		"KO_CONFIG_PATH=" + filepath.Join(k.Root, ".ko.yaml"), // instead of the module's directory
		"GOWORK=off", "CGO_ENABLED=0",
	})
	if k.Offline {
		env = append(env, "GOPROXY=off")
	}
	for i, variable := range env {
		if strings.HasPrefix(variable, "GOFLAGS=") {
			env[i] = toolexec.ReplaceAllString(variable, "")
		}
	}
	return env
}
