// SPDX-License-Identifier: Apache-2.0

package servermain_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

var settings = servermain.Settings{
	Serve:     serve.Config{ShutdownTimeout: time.Minute},
	Telemetry: telemetry.Config{MetricsAddress: "127.0.0.1:0", LogFormat: "json"},
}

func TestRunUntilTheContextEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	err := servermain.Run(ctx, "test", settings, func(context.Context, servermain.Frame) ([]serve.Component, error) {
		return []serve.Component{{
			Endpoints: []serve.Endpoint{{Name: "test", Address: "127.0.0.1:0", Handler: http.NotFoundHandler()}},
			Tasks:     []serve.Task{func(context.Context) error { stop(); return nil }},
		}}, nil
	})
	if err != nil {
		t.Errorf("Run = %v", err)
	}
}

// TestAProgramThatIsStoppedWhileItBegins sends the signal before there is anything to stop.
func TestAProgramThatIsStoppedWhileItBegins(t *testing.T) {
	for _, sent := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sent.String(), func(t *testing.T) { stopWhileItBegins(t, sent) })
	}
}

func stopWhileItBegins(t *testing.T, sent syscall.Signal) {
	t.Helper()
	subscribed := make(chan os.Signal, 1)
	signal.Notify(subscribed, sent) // in case that nohup runs this test: Begin leaves ignored signals alone
	servermain.Begin()
	t.Cleanup(func() { signal.Reset(syscall.SIGTERM, syscall.SIGHUP, os.Interrupt) })
	if err := syscall.Kill(os.Getpid(), sent); err != nil {
		t.Fatal(err)
	}
	served := false
	code := servermain.Main("test", settings, func(ctx context.Context, _ servermain.Frame) ([]serve.Component, error) {
		<-ctx.Done() // as a slow request at the start would
		return []serve.Component{{Tasks: []serve.Task{func(context.Context) error { served = true; return nil }}}}, nil
	})
	if code != 0 || served {
		t.Errorf("exit code %d, served %t: want it to end at the signal, and nothing else", code, served)
	}
}

func TestRunFails(t *testing.T) {
	cause := errors.New("cannot be built")
	err := servermain.Run(t.Context(), "test", settings,
		func(context.Context, servermain.Frame) ([]serve.Component, error) { return nil, cause })
	if !errors.Is(err, cause) {
		t.Errorf("Run = %v, want %v", err, cause)
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "carrier-pigeon")
	if err := servermain.Run(t.Context(), "test", settings, nil); err == nil {
		t.Error("Run with a wrong exporter is no error")
	}
}
