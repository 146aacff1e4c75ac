// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/docker"
	"github.com/krm-function-runner/function-runner/fnctl/internal/fntest"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
)

func TestMain(m *testing.M) {
	fnctl := func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		//nolint:forbidigo // stands in for main
		env := command.Environment{Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
		code := cli.Run(ctx, env, docker.Arguments(os.Args))
		stop()
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){"fnctl": fnctl, "docker": fnctl, "podman": fnctl})
}

// TestScripts runs each script of testdata/script against a gateway with the
// functions below.
func TestScripts(t *testing.T) {
	address, pods := functions.Serve(t), functions.Serve(t, fntest.Pods(podManager()))
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "until": until},
		Setup: func(env *testscript.Env) error {
			env.Values["t"] = env.T()
			env.Setenv("FNCTL_ADDRESS", address)
			env.Setenv("PODS_ADDRESS", pods)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // fnctl would sleep for a second before it exits
			return nil
		},
	})
}

// exits runs a program and checks its exit code: exits CODE PROGRAM ARG...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		code = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s exited with %d instead of %s", args[1], code, args[0])
	}
}

// until runs a program, as exits does, until its output matches: until PATTERN CODE PROGRAM ARG... On a busy machine,
// the gateway's answer may arrive after fnctl's timeout for a suggestion. Users then also try again.
func until(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile("(?m)" + args[0])
	await.Equal(ts.Value("t").(testing.TB), "the output matches "+args[0], func() bool {
		exits(ts, false, args[1:])
		return pattern.MatchString(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
	}, true)
}

var functions = fntest.Gateway{
	"noop:v1":       fntest.Process(func(*framework.ResourceList) error { return nil }),
	"label:v1":      fntest.Process(label),
	"configured:v1": fntest.Process(configured),
	"annotate:v1":   fntest.Process(annotate),
	"drop:v1":       fntest.Process(drop),
	"generate:v1":   fntest.Process(generate),
	"move:v1":       fntest.Process(move(kioutil.PathAnnotation, "config.kubernetes.io/path")),
	"move-old:v1":   fntest.ProcessOld(move("config.kubernetes.io/path")),
	"quote:v1":      fntest.Process(quote),
	"warn:v1":       fntest.Process(warn),
	"garbage:v1":    fntest.Reply("segmentation fault", ""),
	"chatty:v1":     fntest.Reply("kind: ResourceList\nitems: []\n", "I deleted everything\n"),
	"crash:v1":      fntest.Fail(connect.CodeInternal, `Failed to execute function "crash:v1": exit status 3 (boom)`),
	"reject:v1": fntest.Fail(connect.CodeInternal, "failed to evaluate function", &functionrunnerv1.FunctionFailure{
		Reason: functionrunnerv1.FunctionFailure_REASON_EXITED, ExitCode: 1, Stderr: "2 problems\n",
		Results: []*functionrunnerv1.Result{
			{Severity: "warning", Message: "no owner"},
			{
				Severity: "error", Message: "too many replicas",
				ResourceRef: &functionrunnerv1.Result_ResourceRef{ApiVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				Field:       &functionrunnerv1.Result_Field{Path: "spec.replicas"},
				File:        &functionrunnerv1.Result_File{Path: "deployment.yaml"},
			},
		},
	}),
	"silent:v1": fntest.Fail(connect.CodeInternal, "exit status 3", &functionrunnerv1.FunctionFailure{
		Reason: functionrunnerv1.FunctionFailure_REASON_EXITED, ExitCode: 3,
	}),
	"killed:v1": fntest.Fail(connect.CodeInternal, "signal: killed", &functionrunnerv1.FunctionFailure{
		Reason: functionrunnerv1.FunctionFailure_REASON_SIGNALED, Signal: "killed",
	}),
	"absent:v1": fntest.Fail(connect.CodeInternal, "no such file or directory", &functionrunnerv1.FunctionFailure{
		Reason: functionrunnerv1.FunctionFailure_REASON_NOT_STARTED,
	}),
	"hang:v1": fntest.Hang,
	"late:v1": fntest.Fail(connect.CodeDeadlineExceeded,
		"waiting for a pod: queued (the Kubernetes API does not answer: connection refused)"),
}

// config returns a value of the function's configuration.
func config(list *framework.ResourceList, key string) string {
	return list.FunctionConfig.GetDataMap()[key]
}

// label adds to the label "seen" of each resource, so that it shows which functions
// saw the resource, and in which order.
func label(list *framework.ResourceList) error {
	for _, item := range list.Items {
		seen := strings.TrimPrefix(item.GetLabels()["seen"]+"."+config(list, "value"), ".")
		if err := item.PipeE(yaml.SetLabel("seen", seen)); err != nil {
			return err
		}
	}
	return nil
}

// configured copies the name of the configuration into a label.
func configured(list *framework.ResourceList) error {
	for _, item := range list.Items {
		if err := item.PipeE(yaml.SetLabel("configured", list.FunctionConfig.GetName())); err != nil {
			return err
		}
	}
	return nil
}

// annotate copies a few annotations of the input into the data of each ConfigMap.
func annotate(list *framework.ResourceList) error {
	for _, item := range list.Items {
		if item.GetKind() != "ConfigMap" {
			continue
		}
		data := item.GetDataMap()
		for _, key := range []string{
			kioutil.PathAnnotation, kioutil.IndexAnnotation,
			"internal.config.kubernetes.io/package-path",
		} {
			data[key[strings.LastIndex(key, "/")+1:]] = item.GetAnnotations()[key]
		}
		item.SetDataMap(data)
	}
	return nil
}

func drop(list *framework.ResourceList) error {
	var kept []*yaml.RNode
	for _, item := range list.Items {
		if item.GetName() != config(list, "name") {
			kept = append(kept, item)
		}
	}
	list.Items = kept
	return nil
}

func generate(list *framework.ResourceList) error {
	item := yaml.MustParse("apiVersion: v1\nkind: Secret\nmetadata:\n  name: generated\n")
	if path := config(list, "path"); path != "" {
		if err := item.PipeE(yaml.SetAnnotation(kioutil.PathAnnotation, path)); err != nil {
			return err
		}
	}
	list.Items = append(list.Items, item)
	return nil
}

// move returns a function that moves a resource to another file, by the annotations
// that its SDK knows.
func move(annotations ...string) framework.ResourceListProcessorFunc {
	return func(list *framework.ResourceList) error {
		for _, item := range list.Items {
			if item.GetName() != config(list, "name") {
				continue
			}
			for _, key := range annotations {
				if err := item.PipeE(yaml.SetAnnotation(key, config(list, "path"))); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// quote puts all strings in quotes, as functions in other languages may.
func quote(list *framework.ResourceList) error {
	for _, item := range list.Items {
		quoteStrings(item.YNode())
	}
	return nil
}

func quoteStrings(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == yaml.NodeTagString {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		quoteStrings(child)
	}
}

func warn(list *framework.ResourceList) error {
	list.Results = framework.Results{
		{Severity: framework.Info, Message: "looked at everything"},
		{Severity: framework.Error, Message: "something is wrong", File: &framework.File{Path: "a.yaml"}},
	}
	return nil
}
