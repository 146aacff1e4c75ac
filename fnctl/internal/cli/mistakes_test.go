// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/fntest"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// mistakeFunctions answer as gateways do when something is wrong.
var mistakeFunctions = fntest.Gateway{
	"noop:v1": functions["noop:v1"],
	"warn:v1": functions["warn:v1"],
	"ghcr.io/x/host:v1": fntest.Fail(connect.CodeUnavailable, "unable to get the sandbox for ghcr.io/x/host:v1: "+
		"resolve ghcr.io/x/host:v1: registry ghcr.io: log in: dial tcp: lookup ghcr.io on 10.0.0.1:53: no such host: "+
		"check that it runs, and that DNS, proxies and network policies let this service reach it"),
	"ghcr.io/x/login:v1": fntest.Fail(connect.CodeFailedPrecondition, "unable to get the grpc client to the pod for "+
		"ghcr.io/x/login:v1: resolve ghcr.io/x/login:v1: registry ghcr.io: get manifest: UNAUTHORIZED: no (HTTP 401): "+
		"no credentials are configured for it: add some to the docker configuration"),
	"ghcr.io/x/tag:v1": fntest.Fail(connect.CodeFailedPrecondition, "resolve ghcr.io/x/tag:v1: registry ghcr.io: "+
		"get manifest: MANIFEST_UNKNOWN: unknown (HTTP 404): check the image's name, tag or digest"),
	"ghcr.io/x/often:v1": fntest.Fail(connect.CodeResourceExhausted, "resolve ghcr.io/x/often:v1: registry ghcr.io: "+
		"get manifest: TOOMANYREQUESTS: slow down (HTTP 429): the registry limits how often it may be asked",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(30 * time.Second)}),
	"ghcr.io/x/cert:v1": fntest.Fail(connect.CodeFailedPrecondition, "resolve ghcr.io/x/cert:v1: registry ghcr.io: "+
		"log in: x509: expired: renew its certificate, and check the clocks"),
	"down:v1": fntest.Fail(connect.CodeUnavailable, "no pod-manager answers"),
	"device:v1": fntest.Fail(connect.CodeFailedPrecondition, "unable to get the sandbox for device:v1: the image has "+
		"neither Entrypoint nor Cmd"),
	"busy:v1": fntest.Fail(connect.CodeResourceExhausted, "the queue of the function is full",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(2 * time.Second)}),
	"killed:v1": fntest.Fail(connect.CodeInternal, `Failed to execute function "killed:v1": signal: killed (out of luck)`,
		&functionrunnerv1.FunctionFailure{
			Reason: functionrunnerv1.FunctionFailure_REASON_SIGNALED, Signal: "killed", Stderr: "out of luck",
		}),
	"silent:v1": fntest.Fail(connect.CodeInternal, `Failed to execute function "silent:v1": exit status 3 ()`,
		&functionrunnerv1.FunctionFailure{Reason: functionrunnerv1.FunctionFailure_REASON_EXITED, ExitCode: 3}),
	"absent:v1": fntest.Fail(connect.CodeInternal, "fork/exec /functions/absent: no such file or directory",
		&functionrunnerv1.FunctionFailure{Reason: functionrunnerv1.FunctionFailure_REASON_NOT_STARTED}),
	"chatty:v1": fntest.Reply("hello, world\n", ""),
}

// TestMistakes holds what users read after the usual mistakes: the whole output. The reason is in the last line or the
// one before it, once, and advice is one line below.
func TestMistakes(t *testing.T) {
	mistakes, err := txtar.ParseFile("testdata/mistakes.txtar")
	if err != nil || len(mistakes.Files) < 40 {
		t.Fatalf("%v, want 40 mistakes or more", err)
	}
	packages, err := txtar.ParseFile("testdata/mistakes-packages.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := txtar.Write(packages, dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	address := mistakeFunctions.Serve(t)
	for _, mistake := range mistakes.Files {
		t.Run(mistake.Name, func(t *testing.T) {
			line, rest, _ := strings.Cut(strings.ReplaceAll(string(mistake.Data), "${ADDRESS}", address), "\n")
			code, want, _ := strings.Cut(rest, "\n")
			line, input, _ := strings.Cut(line, " <")
			var stdin []byte
			if input != "" {
				if stdin, err = os.ReadFile(input); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			env := command.Environment{
				Stdin: bytes.NewReader(stdin), Stdout: &out, Stderr: &out,
				//nolint:forbidigo // of the programs
				Environ: []string{"FNCTL_ADDRESS=" + address, "PATH=" + os.Getenv("PATH")},
			}
			gotCode := strconv.Itoa(cli.Run(t.Context(), env, strings.Fields(line)[1:]))
			got := traces.ReplaceAllString(times.ReplaceAllString(out.String(), "TIME"), "TRACE")
			if strings.Contains(want, "NUMBER") {
				got = sizes.ReplaceAllString(got, "NUMBER")
			}
			if gotCode != code || got != want {
				t.Errorf("exit code %s, want %s, and\n%swant\n%s", gotCode, code, got, want)
			}
		})
	}
	if left, err := filepath.Glob("made*"); err != nil || len(left) > 0 {
		t.Errorf("sink left %v (%v)", left, err)
	}
}

var (
	times  = regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)\b`)
	traces = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	sizes  = regexp.MustCompile(`\b\d{3,}\b`)
)
