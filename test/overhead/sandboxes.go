// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/test/internal/packagelist"
)

// sandboxedFunction is a function to measure, both in a sandbox and as a bare process without a sandbox.
type sandboxedFunction struct {
	name   string
	image  string // name in the local registry
	binary string // path of the same program outside of the image
	// pause is the time between evaluations. During the pause, the program can start the next sandbox in advance.
	pause time.Duration
}

const sandboxesHeader = "function  items  way       with pauses  over bare  in a row     over bare"

// sandboxes compares functions in sandboxes with bare processes, the exec evaluator and, if installed, podman. It
// measures with pauses between evaluations, in which the next processes start in advance, and without pauses.
func (b *bench) sandboxes(ctx context.Context) error {
	return b.withRegistry(ctx, "sandboxes", func(dir, registry string) error {
		functions, err := b.sandboxed(dir, registry)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(b.out, sandboxesHeader); err != nil {
			return err
		}
		for _, fn := range functions {
			if err := b.sandboxRows(ctx, dir, registry, fn); err != nil {
				return fmt.Errorf("%s function in sandboxes: %w", fn.name, err)
			}
		}
		return nil
	})
}

// withRegistry starts a registry of example functions and calls measure. If the registry does not start, withRegistry
// prints that the measurement is skipped, and returns no error.
func (b *bench) withRegistry(ctx context.Context, what string, measure func(dir, registry string) error) error {
	dir, err := os.MkdirTemp("", "overhead-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { // sandboxes run as other users, which must be able to read dir
		return err
	}
	registry, stop, err := b.startRegistry(ctx, dir)
	if err != nil {
		_, err = fmt.Fprintf(b.out, "skipped: %s: %v\n", what, err)
		return err
	}
	defer stop()
	return measure(dir, registry)
}

// startRegistry starts the registry of examples/functions, and returns its address. In this registry, the image
// "team" contains the Go function under measurement.
func (b *bench) startRegistry(ctx context.Context, dir string) (address string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.examples, "functions"), "--dir="+filepath.Join(dir, "registry"),
		"--team="+filepath.Join(b.functions, b.function))
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, errors.Join(err, errors.New(log.String()))
	}
	return strings.TrimSpace(line), stop, nil
}

// sandboxed returns the functions to measure. It writes the exec evaluator's programs and configuration to dir.
func (b *bench) sandboxed(dir, registry string) ([]sandboxedFunction, error) {
	functions := []sandboxedFunction{
		{"go", registry + "/team:v1", filepath.Join(dir, "exec", b.function), 150 * time.Millisecond},
		{"node", registry + "/pinned:v1", filepath.Join(dir, "exec", "pinned"), 400 * time.Millisecond},
	}
	program, err := os.ReadFile(filepath.Join(b.functions, b.function))
	if err != nil {
		return nil, err
	}
	script, err := os.ReadFile(filepath.Join("..", "examples", "functions", "pinned", "index.js"))
	if err != nil {
		return nil, err
	}
	config := "functions:\n" + configEntry(functions[0].image, b.function) + configEntry(functions[1].image, "pinned")
	err = errors.Join(os.Mkdir(filepath.Join(dir, "exec"), 0o755), os.Mkdir(filepath.Join(dir, "none"), 0o700))
	for path, content := range map[string]string{
		functions[0].binary: string(program), functions[1].binary: "#!/usr/bin/env node\n" + string(script),
		filepath.Join(dir, "exec", "config.yaml"): config, filepath.Join(dir, "none", "config.yaml"): "functions: []\n",
	} {
		err = errors.Join(err, os.WriteFile(path, []byte(content), 0o755))
	}
	return functions, err
}

// sandboxRows measures a function with and without sandboxes, and prints a table row for each program that runs it.
func (b *bench) sandboxRows(ctx context.Context, dir, registry string, fn sandboxedFunction) error {
	ways := []way{{"bare", bareProcess(fn.binary), 0, ""}}
	for name, env := range map[string][]string{
		"exec": nil,
		"none": b.ofStore(dir, registry),
	} {
		gateway := *b
		gateway.functions = filepath.Join(dir, name)
		s, err := gateway.startGateway(ctx, env...)
		if err != nil {
			return err
		}
		defer s.stop()
		shown := map[string]string{"exec": "exec", "none": "sandbox"}[name]
		ways = append(ways, way{shown, remoteWay(s.conn, fn.image), s.cmd.Process.Pid, ""})
	}
	podman, remove, err := b.podmanWay(ctx, fn.image)
	if err != nil {
		return err
	}
	defer remove()
	return b.measureSandboxes(ctx, fn, ways, podman)
}

// podmanWay pulls an image and returns podman as a way to evaluate this image. If podman is not installed, the list of
// ways is empty. The caller must call the returned function remove to delete the image.
func (b *bench) podmanWay(ctx context.Context, image string) (ways []way, remove func(), err error) {
	command := append(strings.Fields(b.podman), image)
	if _, err := exec.LookPath(command[0]); err != nil {
		_, err := fmt.Fprintln(b.out, "skipped: podman, which is not installed")
		return nil, func() {}, err
	}
	pull := exec.CommandContext(ctx, command[0], "pull", "--quiet", "--tls-verify=false", image)
	if out, err := pull.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("podman pull: %w: %s", err, out)
	}
	remove = func() { _ = exec.CommandContext(context.WithoutCancel(ctx), command[0], "rmi", "--force", image).Run() }
	evaluate := func(ctx context.Context, list []byte) ([]byte, error) {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Stdin = bytes.NewReader(list)
		return cmd.Output()
	}
	return []way{{"podman", evaluate, 0, ""}}, remove, nil
}

// measureSandboxes measures all programs for each size of the resource list. It measures podman last, because
// podman continues to clean up after a function has exited.
func (b *bench) measureSandboxes(ctx context.Context, fn sandboxedFunction, ways, podman []way) error {
	for items := range strings.SplitSeq(b.items, ",") {
		n, err := strconv.Atoi(items)
		if err != nil {
			return err
		}
		list := packagelist.New(n)
		all := slices.Concat(ways, podman)
		if err := sameOutput(ctx, all, list); err != nil {
			return err
		}
		var paused, row []times
		for _, together := range [][]way{ways, podman} {
			for pause, into := range map[time.Duration]*[]times{fn.pause: &paused, 0: &row} {
				took, err := b.inTurns(ctx, together, list, pause)
				if err != nil {
					return err
				}
				*into = append(*into, took...)
			}
		}
		if err := b.reportSandboxes(fn.name, n, all, paused, row); err != nil {
			return err
		}
	}
	return nil
}

// reportSandboxes prints the median times of each program, and their ratios to the times of a bare process.
func (b *bench) reportSandboxes(function string, items int, ways []way, paused, row []times) error {
	const micros = time.Microsecond
	for i, w := range ways {
		p, r := paused[i].quantile(.5), row[i].quantile(.5)
		_, err := fmt.Fprintf(b.out, "%-8s %6d  %-8s %12s %10.2f %9s %13.2f\n", function, items, w.name,
			p.Round(micros), float64(p)/float64(paused[0].quantile(.5)),
			r.Round(micros), float64(r)/float64(row[0].quantile(.5)))
		if err != nil {
			return err
		}
	}
	return nil
}
