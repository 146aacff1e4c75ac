// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/test/internal/packagelist"
)

// localRuns measures fnctl render --local, for a kpt package with five functions and for a tree of packages.
func (b *bench) localRuns(ctx context.Context) error {
	return b.withRegistry(ctx, "fnctl --local", func(dir, registry string) error {
		return errors.Join(b.fiveFunctions(ctx, dir, registry), b.packageTree(ctx, dir, registry))
	})
}

// ofStore returns environment variables for a program that runs images of a registry in sandboxes. The program stores
// the images below dir.
func (b *bench) ofStore(dir, registry string) []string {
	return []string{
		"FNR_SANDBOX=" + b.launcher, "FNR_SANDBOX_STORE=" + filepath.Join(dir, "store"),
		"FNR_INSECURE_REGISTRIES=" + registry,
	}
}

// five lists the five images in the pipeline of the measured kpt package, in the order of evaluation.
var five = []string{"team:v1", "scale:v1", "team:v1", "scale:v1", "pinned:v1"}

// fiveFunctions compares fnctl render --local with podman, and with kpt fn render, which also runs podman.
func (b *bench) fiveFunctions(ctx context.Context, dir, registry string) error {
	pkg := filepath.Join(dir, "package")
	if err := errors.Join(os.Mkdir(pkg, 0o700), writePackage(pkg, registry, five...)); err != nil {
		return err
	}
	program := filepath.Join(b.bin, "fnctl")
	fnctl := b.runCommand(b.ofStore(dir, registry), program, "render", pkg, "--local", "-o", "unwrap")
	ways := []way{{"fnctl", fnctl, 0, ""}}
	var podman []way
	for _, image := range slices.Compact(slices.Sorted(slices.Values(five))) {
		way, remove, err := b.podmanWay(ctx, registry+"/"+image)
		if err != nil {
			return err
		}
		defer remove()
		podman = append(podman, way...)
	}
	if len(podman) > 0 {
		ways = append(ways, way{"podman", b.oneByOne(registry), 0, ""})
	}
	if _, err := os.Stat(b.kpt); err == nil && len(podman) > 0 {
		kpt := b.runCommand([]string{"KPT_FN_RUNTIME=podman"}, b.kpt, "fn", "render", pkg, "-o", "unwrap",
			"--image-pull-policy", "IfNotPresent")
		ways = append(ways, way{"kpt", kpt, 0, ""})
	}
	list := packagelist.New(1)
	for _, w := range ways {
		if _, err := w.evaluate(ctx, list); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	took, err := b.inTurns(ctx, ways, list, time.Second)
	if err != nil {
		return err
	}
	for i, w := range ways {
		p := took[i].quantile(.5)
		_, err := fmt.Fprintf(b.out, "five functions, p50: %-8s %12s %10.1f times fnctl\n", w.name, p.Round(time.Millisecond),
			float64(p)/float64(took[0].quantile(.5)))
		if err != nil {
			return err
		}
	}
	return nil
}

// treePackages is the number of independent kpt packages in a measured tree.
const treePackages = 200

// packageTree compares concurrent rendering of a tree of kpt packages with serial rendering.
func (b *bench) packageTree(ctx context.Context, dir, registry string) error {
	tree := filepath.Join(dir, "tree")
	for i := range treePackages {
		pkg := filepath.Join(tree, fmt.Sprintf("package-%03d", i))
		if err := errors.Join(os.MkdirAll(pkg, 0o700), writePackage(pkg, registry, five[0])); err != nil {
			return err
		}
	}
	if err := writePackage(tree, registry); err != nil {
		return err
	}
	var ways []way
	for _, jobs := range []int{1, 2 * runtime.GOMAXPROCS(0)} { // serial rendering, and the default concurrency
		run := b.runCommand(b.ofStore(dir, registry), filepath.Join(b.bin, "fnctl"), "render", tree, "--local",
			"-o", "unwrap", "--jobs", strconv.Itoa(jobs))
		ways = append(ways, way{fmt.Sprintf("jobs=%d", jobs), run, 0, ""})
	}
	list := packagelist.New(1)
	if _, err := ways[0].evaluate(ctx, list); err != nil { // pull the image before the measurement
		return err
	}
	took, err := b.inTurns(ctx, ways, list, time.Second)
	if err != nil {
		return err
	}
	for i, w := range ways {
		p := took[i].quantile(.5)
		_, err := fmt.Fprintf(b.out, "%d packages, p50: %-8s %12s %10.2f times as fast as serially\n", treePackages, w.name,
			p.Round(time.Millisecond), float64(took[0].quantile(.5))/float64(p))
		if err != nil {
			return err
		}
	}
	return nil
}

// runCommand returns a function that runs a program on a kpt package. The returned function ignores its resource list.
func (b *bench) runCommand(env []string, program string, args ...string) func(
	context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, _ []byte) ([]byte, error) {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(cmd.Environ(), env...)
		var log bytes.Buffer
		cmd.Stderr = &log
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, log.String())
		}
		return out, err
	}
}

// oneByOne returns a function that runs the pipeline of five images with podman, one after another.
func (b *bench) oneByOne(registry string) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, list []byte) (out []byte, err error) {
		out = list
		for _, image := range five {
			command := append(strings.Fields(b.podman), registry+"/"+image)
			cmd := exec.CommandContext(ctx, command[0], command[1:]...)
			cmd.Stdin = bytes.NewReader(out)
			var log bytes.Buffer
			cmd.Stderr = &log
			if out, err = cmd.Output(); err != nil {
				return nil, fmt.Errorf("%s: %w: %s", image, err, log.String())
			}
		}
		return out, nil
	}
}

// writePackage writes a kpt package with a single resource and a pipeline of the given function images.
func writePackage(dir, registry string, images ...string) error {
	var kptfile strings.Builder
	kptfile.WriteString("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: package\npipeline:\n  mutators:\n")
	for _, image := range images {
		fmt.Fprintf(&kptfile, "    - image: %s/%s\n      configMap: {team: shop, namespace: shop}\n", registry, image)
	}
	resource := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  colour: blue\n"
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "Kptfile"), []byte(kptfile.String()), 0o600),
		os.WriteFile(filepath.Join(dir, "settings.yaml"), []byte(resource), 0o600))
}
