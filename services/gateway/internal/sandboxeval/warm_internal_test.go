// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package sandboxeval

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/krm-function-runner/function-runner/libs/function"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
)

// oneImage is an image in a directory.
type oneImage struct{ root string }

func (oneImage) ResolveImage(
	context.Context, *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	return &imageresolverv1.ResolveImageResponse{Digest: "sha256:a", Command: []string{"/fn/echo"}, User: "1000"}, nil
}

func (oneImage) ListTags(
	context.Context, *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	return nil, errors.New("no tags are listed")
}

func (i oneImage) Open(context.Context, string, string, func(string)) (string, func(), error) {
	return i.root, func() {}, nil
}

func (oneImage) WhenFull(func()) {}

// newImage makes an image with a function that returns its input.
func newImage(b *testing.B) oneImage {
	b.Helper()
	root, err := os.MkdirTemp("", "image")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(root) })
	for _, dir := range []string{"fn", "proc", "dev", "tmp", "sys"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	testfn.Install(b, filepath.Join(root, "fn"), "echo")
	for _, path := range []string{root, filepath.Join(root, "fn", "echo")} {
		if err := os.Chmod(path, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	return oneImage{root}
}

// BenchmarkWarm compares an evaluation in a spare sandbox with the bare process, in turns. Before each there is time
// for the next sandbox to start.
func BenchmarkWarm(b *testing.B) {
	for _, name := range []string{sandbox.Bubblewrap, sandbox.Crun, sandbox.Runc} {
		launcher, err := sandbox.Find(b.Context(), sandbox.Config{
			Launcher: name, MaxMemory: 1 << 30, MaxProcesses: 100, Log: slog.New(slog.DiscardHandler),
			Env: function.WithGo(nil, 0),
		})
		if err != nil {
			b.Logf("not measured: %v", err)
			continue
		}
		image := newImage(b)
		evaluator, err := New(Config{Resolver: image, Images: image, Launcher: launcher, Service: function.ServiceConfig{
			Program: "gateway", MaxMessageBytes: 1 << 20, PreforkTotal: 2, Telemetry: telemetry.Discard(),
			Settings: function.Settings{Prefork: 2},
		}})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- evaluator.Maintain(ctx) }()
		b.Run(name, func(b *testing.B) { measureWarm(b, evaluator, filepath.Join(image.root, "fn", "echo")) })
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

func measureWarm(b *testing.B, evaluator *Evaluator, binary string) {
	list := []byte("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n")
	request := evaluation.Request{
		Given: "fn:v1", Image: imagename.Name{Repository: "example.com/fn", Tag: "v1"}, ResourceList: list,
		Measured: evalmetrics.NewActive(noop.NewMeterProvider()).Begin("fn:v1"),
	}
	timed := func(f func() error) time.Duration {
		<-time.After(300 * time.Millisecond)
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	var bare, ours []time.Duration
	for b.Loop() {
		bare = append(bare, timed(func() error {
			var out bytes.Buffer
			cmd := exec.Command(binary)
			cmd.Env = []string{}
			cmd.Stdin = bytes.NewReader(list)
			cmd.Stdout = &out
			cmd.Stderr = new(strings.Builder)
			return cmd.Run()
		}))
		ours = append(ours, timed(func() error {
			_, err := evaluator.Evaluate(b.Context(), request)
			return err
		}))
	}
	slices.Sort(bare)
	slices.Sort(ours)
	b.ReportMetric(float64(bare[len(bare)/2].Microseconds()), "bare-µs")
	b.ReportMetric(float64(ours[len(ours)/2].Microseconds()), "sandbox-µs")
	b.ReportMetric(float64(ours[len(ours)/2])/float64(bare[len(bare)/2]), "ratio")
}
