// SPDX-License-Identifier: Apache-2.0

// Command loadgen compares the latency of a function at several targets, such as gateways and the function's program.
// It measures the targets alternately, in a random order in each round, so that changes of the machine's speed affect
// all targets. The variation between rounds determines the confidence intervals. make bench and make bench-cluster run
// this command.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/test/internal/packagelist"
)

// maxMessage is the maximum size of a resource list, in bytes.
const maxMessage = 16 << 20

type settings struct {
	image, items, callers string
	rate                  float64
	json                  bool
	targets               []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadgen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	s := settings{}
	plan := Plan{WarmUp: 2 * time.Second, Settle: 200 * time.Millisecond, MaxInFlight: 1000, Seed: 1}
	flags := flag.NewFlagSet("loadgen", flag.ContinueOnError)
	flags.StringVar(&s.image, "image", "", "image of the function")
	flags.StringVar(&s.items, "items", "1,200,2000", "numbers of resources in the lists")
	flags.StringVar(&s.callers, "callers", "", "numbers of callers, of which each waits for its answer (closed loop)")
	flags.Float64Var(&s.rate, "rate", 0, "evaluations in a second, whether or not earlier ones were answered (open loop)")
	flags.DurationVar(&plan.Duration, "duration", 30*time.Second, "time for each list with each load")
	flags.DurationVar(&plan.Turn, "turn", time.Second, "time of a target before the next one's turn")
	flags.BoolVar(&s.json, "json", false, "print JSON")
	flags.Func("target", "NAME=ADDRESS of a gateway, NAME=exec:PROGRAM or NAME=shell:COMMAND; may be repeated",
		func(target string) error { s.targets = append(s.targets, target); return nil })
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if plan.Inputs, err = makeInputs(s.items); err != nil {
		return err
	}
	if plan.Loads, err = parseLoads(s.callers, s.rate); err != nil {
		return err
	}
	for _, t := range s.targets {
		target, err := newTarget(t, s.image)
		if err != nil {
			return err
		}
		plan.Targets = append(plan.Targets, target)
	}
	levels, err := Run(ctx, plan)
	if err != nil {
		return err
	}
	return s.printReport(Report{Machine: ThisMachine(), Image: s.image, Seed: plan.Seed, Levels: levels})
}

// printReport writes the report. It returns an error if the report contains failed evaluations.
func (s settings) printReport(report Report) error {
	text := report.Text()
	if s.json {
		data, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		text = string(data)
	}
	fmt.Println(text)
	for _, level := range report.Levels {
		for _, result := range level.Results {
			if result.Failed > 0 {
				return fmt.Errorf("%d evaluations of target %s failed, the last one with: %s", result.Failed, result.Target,
					result.Failure)
			}
		}
	}
	return nil
}

// parseLoads returns a closed loop for each number of callers, and an open loop if the rate is not zero.
func parseLoads(callers string, rate float64) ([]Load, error) {
	var all []Load
	if rate > 0 {
		all = append(all, Load{Rate: rate})
	}
	if callers == "" && rate == 0 {
		callers = "1"
	}
	numbers, err := parseNumbers(callers)
	for _, n := range numbers {
		all = append(all, Load{Callers: n})
	}
	return all, err
}

// parseNumbers parses a comma-separated list of positive numbers.
func parseNumbers(list string) ([]int, error) {
	var all []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if list == "" {
			break
		} else if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of one or more", text)
		}
		all = append(all, n)
	}
	return all, nil
}

// newTarget parses a value of the flag --target, such as "name=exec:PROGRAM".
func newTarget(description, image string) (Target, error) {
	name, where, found := strings.Cut(description, "=")
	if !found {
		return Target{}, fmt.Errorf("target %q has no name", description)
	}
	if program, ok := strings.CutPrefix(where, "exec:"); ok {
		return Target{Name: name, Evaluate: runProgram(program)}, nil
	}
	if command, ok := strings.CutPrefix(where, "shell:"); ok {
		return Target{
			Name: name, Evaluate: runProgram("sh", "-c", command),
			Loop: func(ctx context.Context, list []byte, each func(error) bool) {
				Shell(ctx, os.Environ(), command, list, 0, each)
			},
		}, nil
	}
	conn, err := grpc.NewClient(where, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return Target{}, err
	}
	client := evaluator.NewFunctionEvaluatorClient(conn)
	return Target{Name: name, Evaluate: func(ctx context.Context, list []byte) ([]byte, error) {
		resp, err := client.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{Image: image, ResourceList: list})
		return resp.GetResourceList(), err
	}}, nil
}

func runProgram(name string, args ...string) Evaluate {
	return func(ctx context.Context, list []byte) ([]byte, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Stdin = strings.NewReader(string(list))
		out, err := cmd.Output()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return out, err
	}
}

// makeInputs returns resource lists for the function set-namespace. The argument items contains the number of
// Deployments in each resource list, separated by commas.
func makeInputs(items string) ([]Input, error) {
	sizes, err := parseNumbers(items)
	if err != nil {
		return nil, err
	}
	var all []Input
	for _, n := range sizes {
		all = append(all, Input{Name: fmt.Sprintf("%d items", n), List: packagelist.New(n)})
	}
	return all, nil
}
