// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// AppleContainer is Apple's container runtime. It starts a virtual machine for each container.
const AppleContainer = "container"

// Dockers are the container runtimes that kpt supports, in order of preference. All have the command line of docker.
var Dockers = []string{"docker", "podman", "nerdctl"}

// ContainerRuntimes are the supported container runtimes in the order of preference.
var ContainerRuntimes = append(slices.Clip(Dockers), AppleContainer)

// Containers evaluates images with a container runtime of this machine. Each evaluation runs in its own container.
type Containers struct {
	Evaluator
	// Runtime is the name of the container runtime, from [ContainerRuntimes].
	Runtime string
	// Program is the path of the container runtime.
	Program string
	// Offline forbids pulls of images.
	Offline bool
	// Variables are added to the environment of functions, as KEY=VALUE or KEY. The runtime gets the value of a bare KEY
	// from its own environment. This keeps secret values out of the runtime's arguments, which other users can read.
	Variables []string
	// Arguments replace the arguments of images, for example by --help.
	Arguments []string
	// Network returns an error if an image's function must not use the network. Otherwise, it returns nil. If the field is
	// nil, no function may use the network.
	Network func(image string) error
}

// FindContainers returns the first container runtime in names that is installed on this machine. It skips programs that
// are fnctl itself. Users may install fnctl under the name of a container runtime, usually first in PATH.
func FindContainers(names ...string) (*Containers, error) {
	for _, name := range names {
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) { //nolint:forbidigo // exec.LookPath reads it too
			program, err := exec.LookPath(filepath.Join(dir, name))
			if err == nil && filepath.IsAbs(program) && !isOwn(program) {
				return &Containers{Runtime: name, Program: program}, nil
			}
		}
	}
	return nil, fmt.Errorf("functions cannot run on this machine: install %s", strings.Join(names, ", "))
}

// isOwn reports whether a program is fnctl itself. The program may be a link to fnctl, or a copy of any version.
// Without this check, fnctl would call itself endlessly if it is installed as docker.
func isOwn(program string) bool {
	own, ok := debug.ReadBuildInfo()
	info, err := buildinfo.ReadFile(program)
	return ok && err == nil && info.Path == own.Path
}

// CheckDaemon returns an error if the container runtime cannot list containers, for example because its daemon is
// stopped or denies access. The error contains the runtime's own text.
func (c *Containers) CheckDaemon(ctx context.Context) error {
	list := "ps"
	if c.Runtime == AppleContainer {
		list = "ls"
	}
	resp, err := c.execute(ctx, c.Program, []string{c.Program, list, "-q"}, nil)
	if err != nil {
		reason := bytes.TrimSpace(append([]byte(err.Error()+"\n"), resp.Log...))
		return fmt.Errorf("%s lists no containers: %s (check that '%s %s' works)", c.Program, reason, c.Runtime, list)
	}
	return nil
}

// removeTimeout is the maximum duration of the removal of a container whose function was stopped.
const removeTimeout = 10 * time.Second

// exitNotRun is the exit code if the container runtime could not start the container. In contrast, the codes 126 and
// 127 mean that only the program in the container did not start.
const exitNotRun = 125

// Evaluate implements [pipeline.Evaluator].
func (c *Containers) Evaluate(ctx context.Context, req pipeline.Request) (pipeline.Response, error) {
	image := kptfile.ImageName(req.Image, req.Tag)
	if req.Tag != "" && !strings.HasSuffix(image, ":"+req.Tag) {
		return pipeline.Response{}, &client.CallError{
			Problem: fmt.Sprintf("%s cannot select a tag of %s for %q", c.Runtime, image, req.Tag), Lasting: true,
			Advice: "give an exact tag, or use a function runner",
		}
	}
	name := "fnctl-" + strings.ToLower(rand.Text())
	resp, err := c.execute(ctx, image, append([]string{c.Program}, c.runArguments(name, image)...), req.ResourceList)
	failed, ok := errors.AsType[*pipeline.FunctionError](err)
	if !ok {
		if err != nil {
			c.removeContainer(ctx, name)
		}
		return resp, err
	}
	switch failed.Failure.GetExitCode() {
	case exitNotRun:
		return resp, &client.CallError{
			Problem: fmt.Sprintf("%s did not run %s: %s", c.Runtime, image, strings.TrimSpace(string(resp.Log))),
			Advice:  "check the image, and that '" + c.Runtime + " run' works",
		}
	case exitNotRun + 1, exitNotRun + 2:
		failed.Failure.Reason = functionrunnerv1.FunctionFailure_REASON_NOT_STARTED
	}
	return resp, err
}

// removeContainer stops and removes a container, even if ctx has expired. When we kill 'docker run', the container
// continues to run. We ignore errors, because some runtimes fail if the container was not created yet.
func (c *Containers) removeContainer(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	_, _ = c.execute(ctx, name, []string{c.Program, "rm", "-f", name}, nil)
}

// runArguments returns the arguments of the container runtime that run the function of an image in a new container.
func (c *Containers) runArguments(name, image string) []string {
	args := []string{"run", "--rm", "-i", "--name", name, "--user", "65534:65534"}
	if c.Network == nil || c.Network(image) != nil {
		args = append(args, "--network", "none")
	}
	if c.Runtime != AppleContainer { // AppleContainer lacks these options
		pull := "missing"
		if c.Offline {
			pull = "never"
		}
		// Without --stop-signal=KILL, podman waits for 10 s when it removes a container that ignores SIGTERM.
		args = append(args, "--security-opt=no-new-privileges", "--stop-signal=KILL", "--pull", pull)
	}
	for _, variable := range c.Variables {
		args = append(args, "-e", variable)
	}
	return slices.Concat(args, []string{image}, c.Arguments)
}
