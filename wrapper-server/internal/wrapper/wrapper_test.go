// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/wrapper-server/internal/wrapper"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a wrapper server around a function of that behaviour, in an environment.
func start(t *testing.T, behaviour string, environ []string, flags ...string) string {
	t.Helper()
	return startIn(t, t.TempDir(), behaviour, environ, flags...)
}

// startIn does so with the function's binary in dir.
func startIn(t *testing.T, dir, behaviour string, environ []string, flags ...string) string {
	t.Helper()
	return serveWith(t, load(t, environ, append(flags, "--", conformance.Install(t, dir, behaviour))...))
}

// load returns the configuration of a server with an environment and arguments, as the program has it.
func load(t *testing.T, environ []string, args ...string) wrapper.Config {
	t.Helper()
	argv, environ, _ := wrapper.Isolate(append([]string{"wrapper-server"}, args...), environ)
	cfg, err := wrapper.LoadConfig(argv[2:], environ, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// serveWith runs a wrapper server.
func serveWith(t *testing.T, cfg wrapper.Config) string {
	t.Helper()
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) { return wrapper.New(cfg, frame) })
}

func TestConformance(t *testing.T) {
	for name, prefork := range map[string]string{"without prefork": "0", "with prefork": "2"} {
		t.Run(name, func(t *testing.T) {
			testConformance(t, prefork)
		})
	}
}

func testConformance(t *testing.T, prefork string) {
	t.Helper()
	conformance.Run(t, conformance.Target{
		Serve: func(t *testing.T, behaviour string) conformance.Function {
			dir := t.TempDir()
			return conformance.Function{
				Dir: dir, Address: startIn(t, dir, behaviour, nil, "--prefork="+prefork),
				Image: "example.com/fn/" + strings.ReplaceAll(behaviour, "=", "-") + ":v1",
			}
		},
		Texts: conformance.PodTexts(""),
	})
}

// evaluate calls a wrapper server once.
func evaluate(ctx context.Context, t *testing.T, address string) (*evaluator.EvaluateFunctionResponse, error) {
	t.Helper()
	conn := servetest.Dial(t, address)
	return evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(ctx,
		&evaluator.EvaluateFunctionRequest{Image: "fn", ResourceList: []byte(conformance.List)})
}

func TestFunctionGetsTheImagesEnvironmentOnly(t *testing.T) {
	address := start(t, "env", []string{
		"LANG=C", "FNR_QUEUE=1", "OTEL_SERVICE_NAME=x", "KUBERNETES_SERVICE_HOST=10.0.0.1", "HOME=/usr",
	})
	resp, err := evaluate(t.Context(), t, address)
	if err != nil {
		t.Fatal(err)
	}
	list := string(resp.GetResourceList())
	for variable, want := range map[string]bool{
		"LANG=C": true, "HOME=/usr": true, "GOMAXPROCS=1": true,
		"FNR_": false, "OTEL_": false, "KUBERNETES_": false, "GOPATH": false,
	} {
		if strings.Contains(list, variable) != want {
			t.Errorf("%s in the function's environment: %v, want %v", variable, !want, want)
		}
	}
}

// TestTheEnvironmentSetsNothing gives a server the variables that all of its settings would have, by name: its
// settings are those of a server without environment. It also tests the variables that the pod sets.
func TestTheEnvironmentSetsNothing(t *testing.T) {
	image := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://192.0.2.1", "GODEBUG=http2debug=2", "HTTPS_PROXY=http://192.0.2.1",
	}
	settings := config.Settings(new(wrapper.Config))
	if len(settings) < 15 {
		t.Fatalf("the settings are %v: are they found in another way now?", settings)
	}
	for _, s := range settings {
		for _, value := range []string{"true", "1", "off"} {
			image = append(image, s.Variable+"="+value)
		}
	}
	args := []string{"--port=9446", "--environment=OTEL_TRACES_EXPORTER,FNR_TLS_SECRET", "--", "fn"}
	pod := []string{"OTEL_TRACES_EXPORTER=otlp", "FNR_TLS_SECRET=" + secret}
	image = slices.DeleteFunc(image, func(variable string) bool { return strings.HasPrefix(variable, "FNR_TLS_SECRET=") })
	argv, environ, ok := wrapper.Isolate(append([]string{"wrapper-server"}, args...), slices.Concat(image, pod))
	if !ok {
		t.Fatal("the server is not isolated")
	}
	own := slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, "function:") })
	if !slices.Equal(own, pod) {
		t.Errorf("the server's environment is %q, want %q", own, pod)
	}
	_, inPod, _ := wrapper.Isolate(argv[:1], []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"})
	if wrapper.InPod(environ) || !wrapper.InPod(inPod) {
		t.Error("the server takes itself to be in a pod where it is not, or the other way round")
	}
	if _, _, again := wrapper.Isolate(argv, environ); again {
		t.Error("an isolated server is isolated again")
	}
	got, err := wrapper.LoadConfig(argv[2:], environ, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	want := load(t, pod, args...)
	want.Env = append(want.Env, "GODEBUG=http2debug=2", "HTTPS_PROXY=http://192.0.2.1")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("with the image's variables, the settings are\n%+v, want\n%+v", got, want)
	}
}

func TestFlattenLog(t *testing.T) {
	_, err := evaluate(t.Context(), t, start(t, "exit1", nil, "--flatten-log"))
	if msg := status.Convert(err).Message(); strings.Contains(msg, "\n") {
		t.Errorf("message %q has several lines", msg)
	}
	resp, err := evaluate(t.Context(), t, start(t, "warn", nil, "--flatten-log=true"))
	if err != nil || string(resp.GetLog()) != "one resource is invalid" {
		t.Errorf("log %q, %v", resp.GetLog(), err)
	}
}

// timedOut is how Porch's text for a deadline that has passed begins.
const timedOut = "function evaluation timed out for fn: after "

// TestDeadlineInTheQueue has a caller wait behind another one until its deadline: the
// text is Porch's.
func TestDeadlineInTheQueue(t *testing.T) {
	dir := t.TempDir()
	address := startIn(t, dir, "hang", nil, "--concurrency=1", "--prefork=0")
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := evaluate(ctx, t, address)
		ended <- err
	}()
	testfn.AwaitRunning(t, dir, 1)
	conformance.CheckWaited(t, conformance.Function{Address: address, Image: "fn"}, timedOut, "waiting for a free slot")
	leave()
	<-ended
}

// TestEvaluationTime has a caller who waits for ever, in a server's queue and in the function. The
// answer names what the user can set there.
func TestEvaluationTime(t *testing.T) {
	address := start(t, "hang", nil, "--concurrency=1", "--max-evaluation-time=100ms")
	errs := make(chan error, 2)
	for range cap(errs) {
		go func() {
			_, err := evaluate(t.Context(), t, address)
			errs <- err
		}()
	}
	for range cap(errs) {
		checkTimeLimit(t, <-errs, "the pod-manager's setting FNR_MAX_EVALUATION_TIME (")
	}
}

// checkTimeLimit reports an error unless err is that of a limit that a setting bounds.
func checkTimeLimit(t *testing.T, err error, setting string) {
	t.Helper()
	answer := status.Convert(err)
	if answer.Code() != codes.DeadlineExceeded || !strings.HasPrefix(answer.Message(), timedOut) ||
		!strings.Contains(answer.Message(), "raise "+setting) {
		t.Errorf("the answer is %v, want the limit that passed, and %s", err, setting)
	}
	if len(answer.Details()) != 1 {
		t.Errorf("the answer has details %v, want that the limit is the server's own", answer.Details())
	}
}

func TestLoadConfigRejects(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"no entrypoint": {[]string{"--port", "9446"}, "no entrypoint"},
		"port":          {[]string{"--port=0", "--", "fn"}, "--port is 0"},
		"size":          {[]string{"--max-request-body-size=1", "--", "fn"}, "--max-request-body-size is 1"},
		"no size": {
			[]string{"--max-request-body-size=6M", "--", "fn"},
			"-max-request-body-size: it must be a number of bytes, or a size such as 6Mi",
		},
		"large":     {[]string{"--max-request-body-size=2Gi", "--", "fn"}, "it must be 64Ki to 1Gi"},
		"verbosity": {[]string{"--verbosity=9", "--", "fn"}, "--verbosity is 9"},
		"unknown":   {[]string{"--frobnicate", "--", "fn"}, "frobnicate"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := wrapper.LoadConfig(tc.args, nil, t.Output()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("LoadConfig = %v, want an error that says %q", err, tc.want)
			}
		})
	}
}
