// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Ko builds images.
type Ko struct {
	// Command returns the command line that runs ko with these arguments in a directory from which
	// it reaches the registry.
	Command func(dir string, args ...string) []string
	// Env is its environment.
	Env []string
	// Root is the repository's root.
	Root string
	// Insecure means that the registry may be without TLS.
	Insecure bool
	// Offline means that ko has no network but the registry: all modules are in the cache, since
	// the program was built before.
	Offline bool
}

// KoVersion is the version of ko that builds the images.
const KoVersion = "v0.19.1"

// GoRunKo returns the command line of ko as Go builds and caches it. ko runs in dir, which is in
// the program's module.
func GoRunKo(dir string, args ...string) []string {
	return append([]string{"env", "--chdir=" + dir, "go", "run", "github.com/google/ko@" + KoVersion}, args...)
}

// Target is the destination of an image, and its base.
type Target struct {
	Repository, Base string
	Tags             []string
	Labels           map[string]string
	// Platform is the target platform. If it is empty, .ko.yaml decides.
	Platform string
	// SBOM means that ko pushes a list of the program's modules beside the image, in SPDX's form.
	SBOM bool
}

// arguments returns ko's arguments for the target.
func (t Target) arguments() []string {
	sbom := "none"
	if t.SBOM {
		sbom = "spdx"
	}
	args := []string{"build", "--bare", "--sbom=" + sbom, "--tags=" + strings.Join(t.Tags, ",")}
	if t.Platform != "" {
		args = append(args, "--platform="+t.Platform)
	}
	for _, label := range slices.Sorted(maps.Keys(t.Labels)) {
		args = append(args, "--image-label="+label+"="+t.Labels[label])
	}
	return args
}

// Build builds the program's image and pushes it.
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

// environmentOf returns the environment of ko for a target.
func (k Ko) environmentOf(to Target) []string {
	env := slices.Concat(k.Env, []string{
		"KO_DOCKER_REPO=" + to.Repository,
		"KO_DEFAULTBASEIMAGE=" + to.Base,
		"KO_CONFIG_PATH=" + filepath.Join(k.Root, ".ko.yaml"), // ko would look for it in the module's directory
		"GOWORK=off", "CGO_ENABLED=0",
	})
	if k.Offline {
		env = append(env, "GOPROXY=off")
	}
	return env
}
