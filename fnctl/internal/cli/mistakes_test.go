// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
	"github.com/krm-function-runner/function-runner/fnctl/internal/fntest"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// mistakePackages are packages and files with the usual mistakes.
const mistakePackages = `
-- good/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: good
-- good/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
-- field/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: field
pipeline:
  mutators:
    - image: noop:v1
      configmap: {a: b}
-- top/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: top
pipelines: {}
-- when/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: when
pipeline:
  mutators:
    - {image: noop:v1, when: "true"}
-- old/Kptfile --
apiVersion: kpt.dev/v1alpha2
kind: Kptfile
-- path/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: path
pipeline:
  mutators:
    - {image: noop:v1, configPath: c.yaml}
-- both/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: both
pipeline:
  mutators:
    - {image: noop:v1, configPath: c.yaml, configMap: {a: b}}
-- key/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: key
pipeline:
  mutators:
    - {image: noop:v1, configMap: {"": x}}
-- exec/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: exec
pipeline:
  mutators:
    - exec: ./script.sh
-- helm/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: helm
-- helm/templates/a.yaml --
apiVersion: v1
kind: Service
---
kind: A
a: b: {{ .Values.c }}
-- values/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: values
-- values/values.yaml --
replicas: 3
-- list.yaml --
apiVersion: config.kubernetes.io/v1
kind: ResourceList
-- text --
hello
-- blank --
`

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

// TestMistakes holds what users read after the usual mistakes: the whole output, but for times. The reason is in the
// last line or the one before it, once, and advice is one line below.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	if err := txtar.Write(txtar.Parse([]byte(mistakePackages)), dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	address := mistakeFunctions.Serve(t)
	const nothing = "\nfnctl: function %q failed; nothing was written"
	for name, tc := range map[string]struct {
		args, stdin string
		code        int
		want        string
	}{
		"no Kptfile":       {"render helm/templates", "", 2, "fnctl: helm/templates is not a package: it has no Kptfile"},
		"no directory":     {"render absent", "", 2, "fnctl: read package: open absent: no such file or directory"},
		"misspelled field": {"render field", "", 2, "fnctl: field/Kptfile:8: a Kptfile has no field configmap here (do you mean configMap?)"},
		"misspelled top":   {"render top", "", 2, "fnctl: top/Kptfile: pipelines is no field of a Kptfile: do you mean pipeline?"},
		"proposed field":   {"render when", "", 2, "fnctl: when/Kptfile:7: a Kptfile has no field when here: it was proposed for kpt, and no release has it"},
		"old version":      {"render old", "", 2, `fnctl: old/Kptfile: apiVersion "kpt.dev/v1alpha2" is no longer supported: migrate the package to kpt.dev/v1`},
		"no configuration": {"render path", "", 2, `fnctl: path/Kptfile: pipeline.mutators[0].configPath "c.yaml" is not a resource file of the package`},
		"two of them":      {"render both", "", 2, "fnctl: both/Kptfile: pipeline.mutators[0] must have configMap or configPath, not both"},
		"key without name": {"render key", "", 2, "fnctl: key/Kptfile: pipeline.mutators[0].configMap has an entry without a key"},
		"exec": {
			"render exec --dry-run", "", 2,
			`fnctl: exec/Kptfile: pipeline.mutators[0].exec "./script.sh" is a program of this machine: if you trust the package, permit it by --allow-exec`,
		},
		"Helm chart": {
			"render helm --dry-run", "", 2,
			"fnctl: read package: helm/templates/a.yaml:5: mapping values are not allowed in this context (it looks like a template, of Helm for example); if the file is not a resource, name it in .krmignore",
		},
		"values file": {
			"render values --dry-run", "", 2,
			"fnctl: package values: values.yaml is not a resource: it has no apiVersion; if a file is no resource, name it in .krmignore",
		},
		"list without items": {
			"eval - -i noop:v1", "apiVersion: v1\nkind: ResourceList\n", 2,
			"fnctl: the ResourceList has no items; if a file is no resource, name it in .krmignore",
		},
		"text on standard input":       {"eval - -i noop:v1", "kind: A\n---\nhello\n", 2, "fnctl: read standard input:3: it is text, not a resource with apiVersion, kind and metadata"},
		"empty standard input":         {"eval - -i noop:v1", "", 2, "fnctl: read standard input: it is empty"},
		"empty standard input of sink": {"sink made", "\n", 2, "fnctl: read standard input: it is empty"},
		"nothing matches": {
			"eval good -i noop:v1 --match-kind Deploymnt", "", 0,
			"  ✓ noop:v1 TIME\n      no resource matches its selectors\nFiles: 0 changed, 0 created, 0 deleted",
		},
		"success with errors": {
			"eval good -i warn:v1", "", 0,
			"  ! warn:v1 TIME\n      [error] (a.yaml): something is wrong\n      [info] looked at everything\n" +
				"Files: 0 changed, 0 created, 0 deleted",
		},
		"format as a directory": {
			"render good -o json", "", 2,
			"fnctl: takes stdout, unwrap or a new directory for --output: a directory of this name is ./json (see fnctl render --help)",
		},
		"unknown flag":      {"render --nope", "", 2, "fnctl: unknown flag: --nope (see fnctl render --help)"},
		"no function":       {"eval good", "", 2, "fnctl: needs --image or --exec (see fnctl eval --help)"},
		"arguments":         {"eval good -i noop:v1 -- A b", "", 2, `fnctl: takes arguments after -- as key=value, got "b" (see fnctl eval --help)`},
		"two targets":       {"render good field", "", 2, "fnctl: takes one argument: DIR, a package (see fnctl render --help)"},
		"label without =":   {"eval good -i noop:v1 --match-labels x", "", 2, `fnctl: invalid argument "x" for "--match-labels" flag: must be KEY=VALUE, got "x" (see fnctl eval --help)`},
		"no gateway":        {"eval good -i noop:v1 --address 127.0.0.1:1", "", 2, "  ✗ noop:v1 TIME\nfnctl: the gateway at 127.0.0.1:1 cannot be reached (dial tcp 127.0.0.1:1: connect: connection refused)\n  start it, or give its address with --address or FNCTL_ADDRESS"},
		"TLS to plain HTTP": {"eval good -i noop:v1 --address https://" + address, "", 2, "  ✗ noop:v1 TIME\nfnctl: the gateway at https://" + address + " does not speak TLS\n  give its address as http://, or without a scheme"},
		"wrong scheme":      {"eval good -i noop:v1 --address ftp://x", "", 2, `fnctl: the gateway's address "ftp://x" must be host:port or a URL of http or https`},
		"misspelled image":  {"eval good -i nop:v1", "", 2, "  ✗ nop:v1 TIME\nfnctl: no evaluator of the gateway serves function \"nop:v1\"\n  check the image's name and tag, map it in the exec evaluator's config, or enable the pod evaluator"},
		"no such host":      {"eval good -i ghcr.io/x/host:v1", "", 2, "  ✗ ghcr.io/x/host:v1 TIME\nfnctl: cannot pull ghcr.io/x/host:v1: no such host ghcr.io\n  check the name, and that the gateway's DNS and proxies know it"},
		"private image":     {"eval good -i ghcr.io/x/login:v1", "", 2, "  ✗ ghcr.io/x/login:v1 TIME\nfnctl: cannot pull ghcr.io/x/login:v1: ghcr.io requires credentials, or has no such image\n  check the image's name, and the gateway's credentials"},
		"misspelled tag":    {"eval good -i ghcr.io/x/tag:v1", "", 2, "  ✗ ghcr.io/x/tag:v1 TIME\nfnctl: cannot pull ghcr.io/x/tag:v1: ghcr.io has no such image or tag\n  check the image's name and tag"},
		"rate limit":        {"eval good -i ghcr.io/x/often:v1", "", 2, "  ✗ ghcr.io/x/often:v1 TIME\nfnctl: cannot pull ghcr.io/x/often:v1: ghcr.io limits how often it may be asked\n  try again later, or give the gateway credentials or a mirror (in TIME)"},
		"certificate":       {"eval good -i ghcr.io/x/cert:v1", "", 2, "  ✗ ghcr.io/x/cert:v1 TIME\nfnctl: cannot pull ghcr.io/x/cert:v1: ghcr.io: x509: expired\n  renew its certificate, and check the clocks"},
		"wrong image":       {"eval good -i device:v1", "", 2, "  ✗ device:v1 TIME\nfnctl: cannot run \"device:v1\": the image has neither Entrypoint nor Cmd"},
		"busy":              {"eval good -i busy:v1", "", 2, "  ✗ busy:v1 TIME\nfnctl: \"busy:v1\" was not run: the queue of the function is full\n  the gateway is busy: try again (in TIME)"},
		"large package":     {"eval good -i noop:v1 --max-message-size 100", "", 2, "  ✗ noop:v1 TIME\nfnctl: the package is too large for \"noop:v1\": NUMBER bytes (message size NUMBER exceeds sendMaxBytes NUMBER)\n  raise --max-message-size, now NUMBER, here and --max-request-body-size at the gateway"},
		"killed":            {"eval good -i killed:v1", "", 1, "  ✗ killed:v1 TIME\n      out of luck\n      ended by signal killed" + strings.Replace(nothing, "%q", `"killed:v1"`, 1)},
		"silent":            {"eval good -i silent:v1", "", 1, "  ✗ silent:v1 TIME\n      Failed to execute function \"silent:v1\": exit status 3\n      exit code 3" + strings.Replace(nothing, "%q", `"silent:v1"`, 1)},
		"missing binary":    {"eval good -i absent:v1", "", 2, "  ✗ absent:v1 TIME\n      fork/exec /functions/absent: no such file or directory\n      could not be started" + strings.Replace(nothing, "%q", `"absent:v1"`, 1)},
		"missing program":   {"eval good --exec ./nope", "", 2, "  ✗ ./nope TIME\nfnctl: run program \"./nope\": fork/exec ./nope: no such file or directory"},
		"prints text":       {"eval good -i chatty:v1", "", 1, "  ✗ chatty:v1 TIME\nfnctl: the output of function \"chatty:v1\" cannot be used: it is not a ResourceList: it begins with \"hello, world\"; logs belong on standard error"},
		"prints nothing":    {"eval good --exec true", "", 1, "  ✗ true TIME\nfnctl: the output of function \"true\" cannot be used: it is empty, but must be a ResourceList"},
		"save without type": {"eval good -i noop:v1 --save", "", 2, `fnctl: needs --type mutator or --type validator with --save, got "" (see fnctl eval --help)`},
		"offline":           {"eval good -i noop:v1 --offline", "", 2, "fnctl: takes --offline with --local only: a function runner elsewhere has its own images (see fnctl eval --help)"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			env := cli.Environment{
				Address: address, Stdin: strings.NewReader(tc.stdin), Stdout: &out, Stderr: &out,
				Environ: []string{"PATH=" + os.Getenv("PATH")}, //nolint:forbidigo // of the programs
			}
			code := cli.Run(t.Context(), env, strings.Fields(tc.args))
			got := strings.TrimSuffix(times.ReplaceAllString(out.String(), "TIME"), "\n")
			if strings.Contains(tc.want, "NUMBER") {
				got = sizes.ReplaceAllString(got, "NUMBER")
			}
			if code != tc.code || got != tc.want {
				t.Errorf("exit code %d, want %d, and\n%s\nwant\n%s", code, tc.code, got, tc.want)
			}
		})
	}
	if left, err := filepath.Glob("made*"); err != nil || len(left) > 0 {
		t.Errorf("sink left %v (%v)", left, err)
	}
}

var (
	times = regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)\b`)
	sizes = regexp.MustCompile(`\b\d{3,}\b`)
)
