// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/bench"
	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
)

const (
	// maxBenchItems bounds generated lists: larger ones exceed all message limits.
	maxBenchItems = 1_000_000
	// maxBenchRate bounds the evaluations per second: their times are planned ahead.
	maxBenchRate = 1_000_000
	// shellPrefix is that of targets that are loops in shells.
	shellPrefix = "shell:"
)

// check checks the flags.
func (c *benchCommand) check(cmd *cobra.Command) error {
	switch {
	case c.image == "":
		return errors.New("takes the function as --image")
	case c.output != "" && c.output != asJSON:
		return fmt.Errorf("takes json for --output, got %q", c.output)
	case c.turn <= 0 || c.duration <= 0:
		return errors.New("takes more than zero for --turn and --duration")
	case c.warmUp < 0 || c.settle < 0:
		return errors.New("takes zero or more for --warm-up and --settle")
	case c.maxInFlight < 1:
		return fmt.Errorf("takes 1 or more for --max-in-flight, got %d", c.maxInFlight)
	case len(c.targets) > 0 && cmd.Flags().Changed("address"):
		return errors.New("takes --target or --address, not both")
	case len(c.targets) > 0 && c.gateway.cluster.used():
		return errors.New("takes --target or --namespace, not both: targets are called at their addresses")
	}
	if err := c.checkTargets(); err != nil {
		return err
	}
	for _, load := range c.loads() {
		possible := load.Rate >= 0 && load.Rate <= maxBenchRate // not a number is neither
		if load.Callers < 0 || load.Burst < 0 || !possible || load == (bench.Load{}) {
			return fmt.Errorf("takes numbers above zero for --callers, --rate and --burst, and at most %d for --rate",
				maxBenchRate)
		}
	}
	return nil
}

func (c *benchCommand) checkTargets() error {
	names := map[string]bool{}
	for _, target := range c.targets {
		name, where, _ := strings.Cut(target, "=")
		if name == "" || where == "" || names[name] {
			return fmt.Errorf("takes NAME=ADDRESS, NAME=exec:PROGRAM or NAME=shell:COMMAND for --target, each name once, "+
				"got %q", target)
		}
		names[name] = true
		if strings.HasPrefix(where, shellPrefix) && len(c.rates)+len(c.bursts) > 0 {
			return fmt.Errorf("takes --callers only with the loop in a shell of target %s", name)
		}
	}
	return nil
}

// open returns the targets. The caller must call stop, even after an error.
func (c *benchCommand) open(ctx context.Context) (targets []bench.Target, stop func(), err error) {
	var gateways []*client.Gateway
	stop = func() {
		for _, g := range gateways {
			g.Close()
		}
	}
	config, err := c.gateway.config(c.env)
	if err != nil {
		return nil, stop, err
	}
	if len(c.targets) == 0 {
		gateway, err := client.New(config)
		if err != nil {
			return nil, stop, err
		}
		gateways = append(gateways, gateway)
		return []bench.Target{{Name: "gateway", Evaluate: c.evaluate(gateway, pipeline.Request{})}}, stop, nil
	}
	for _, target := range c.targets {
		name, where, _ := strings.Cut(target, "=")
		if program, ok := strings.CutPrefix(where, "exec:"); ok {
			targets = append(targets, c.programTarget(name, program))
			continue
		}
		if command, ok := strings.CutPrefix(where, shellPrefix); ok {
			targets = append(targets, c.shellTarget(name, command))
			continue
		}
		config.Address, config.Unreachable = where, ""
		gateway, err := client.New(config)
		if err != nil {
			return nil, stop, fmt.Errorf("target %s: %w", name, err)
		}
		gateways = append(gateways, gateway)
		targets = append(targets, bench.Target{Name: name, Evaluate: c.evaluate(gateway, pipeline.Request{})})
	}
	return targets, stop, ctx.Err()
}

// programTarget returns a program of this machine as a target.
func (c *benchCommand) programTarget(name, program string) bench.Target {
	programs := &local.Evaluator{Environment: c.env.Environ, MaxOutputBytes: c.gateway.maxMessageBytes}
	return bench.Target{Name: name, Evaluate: c.evaluate(programs, pipeline.Request{Exec: program})}
}

// shellTarget returns a loop in a shell for each caller as a target. A single evaluation is by a new shell.
func (c *benchCommand) shellTarget(name, command string) bench.Target {
	target := c.programTarget(name, "sh -c '"+strings.ReplaceAll(command, "'", `'"'"'`)+"'")
	target.Loop = func(ctx context.Context, list []byte, each func(error) bool) {
		local.Shell(ctx, c.env.Environ, command, list, c.gateway.timeout, each)
	}
	return target
}

// evaluate evaluates the image, or the program of a request.
func (c *benchCommand) evaluate(evaluator pipeline.Evaluator, req pipeline.Request) bench.Evaluate {
	return func(ctx context.Context, list []byte) ([]byte, error) {
		if c.gateway.timeout > 0 {
			limited, cancel := context.WithTimeout(ctx, c.gateway.timeout)
			defer cancel()
			ctx = limited
		}
		req := req
		req.ResourceList, req.Image, req.Tag = list, c.image, c.tag
		resp, err := evaluator.Evaluate(ctx, req)
		return resp.ResourceList, err
	}
}

// inputs returns the lists to evaluate: the one in a file, or generated ones.
func (c *benchCommand) inputs(args, pairs []string) ([]bench.Input, error) {
	if len(args) == 1 {
		if len(pairs) > 0 {
			return nil, errors.New("takes FILE or arguments after --, not both: the configuration is in the ResourceList")
		}
		list, err := os.ReadFile(args[0])
		return []bench.Input{{Name: args[0], List: list}}, err
	}
	config := noConfig()
	if len(pairs) > 0 {
		var err error
		if config, _, err = pairsConfig(pairs); err != nil {
			return nil, err
		}
	}
	return generate(c.items, config)
}

// generate returns an input with each of these numbers of items.
func generate(items []int, config *yaml.RNode) ([]bench.Input, error) {
	var inputs []bench.Input
	for _, n := range items {
		if n < 0 || n > maxBenchItems {
			return nil, fmt.Errorf("takes 0 to %d for --items, got %d", maxBenchItems, n)
		}
		list, err := benchList(n, config)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, bench.Input{Name: fmt.Sprintf("%d items", n), List: list})
	}
	return inputs, nil
}

// benchList returns a ResourceList of n Deployments.
func benchList(n int, config *yaml.RNode) ([]byte, error) {
	var b strings.Builder
	b.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")
	if n == 0 {
		b.WriteString("  []\n")
	}
	for i := range n {
		fmt.Fprintf(&b, benchDeployment, i)
	}
	text, err := config.String()
	if err != nil {
		return nil, fmt.Errorf("write the function's configuration: %w", err)
	}
	b.WriteString("functionConfig:\n")
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return []byte(b.String()), nil
}

const benchDeployment = `- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-%[1]d
    namespace: default
    labels:
      app: web
    annotations:
      config.kubernetes.io/index: '0'
      config.kubernetes.io/path: 'deployment-%[1]d.yaml'
      internal.config.kubernetes.io/index: '0'
      internal.config.kubernetes.io/path: 'deployment-%[1]d.yaml'
  spec:
    replicas: 3 # as many as there are zones
    selector:
      matchLabels:
        app: web
    template:
      metadata:
        labels:
          app: web
      spec:
        containers:
        - name: web
          image: example.com/web:v1.2.3
`
