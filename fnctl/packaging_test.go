// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/fntest"
)

// workspace is a repository with packages in a system that has fnctl as a program.
type workspace struct {
	dir, bin string
	env      []string
}

// stale is a package that is not rendered, as its function sets a label.
const stale = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: web
  annotations:
    config.kubernetes.io/local-config: "true"
pipeline:
  mutators:
  - image: label:v1
`

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"

func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	label := func(list *framework.ResourceList) error {
		for _, item := range list.Items {
			if err := item.PipeE(yaml.SetLabel("team", "shop")); err != nil {
				return err
			}
		}
		return nil
	}
	w := &workspace{dir: t.TempDir(), bin: t.TempDir()}
	w.write(t, "web/Kptfile", stale)
	w.write(t, "web/settings.yaml", configMap)
	w.write(t, "web/inner/Kptfile", strings.Replace(stale, "name: web", "name: inner", 1))
	w.write(t, "plain/settings.yaml", configMap)
	w.env = []string{
		"FNCTL_ADDRESS=" + fntest.Gateway{"label:v1": fntest.Process(label)}.Serve(t), "HOME=" + t.TempDir(),
		"PATH=" + w.bin + ":/usr/local/bin:/usr/bin:/bin", "RUNNER_TEMP=" + t.TempDir(),
	}
	return w
}

func (w *workspace) write(t *testing.T, name, content string) {
	t.Helper()
	name = filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// program is a script that is fnctl: the binary of this test.
func program() string { return fmt.Sprintf("#!/bin/sh\n%s=1 exec %q \"$@\"\n", asProgram, os.Args[0]) }

// install adds a program to the system.
func (w *workspace) install(t *testing.T, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.bin, name), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

// run runs a command in the workspace, and returns its outputs and its exit code.
func (w *workspace) run(t *testing.T, command ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = w.dir
	cmd.Env = w.env
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

// read returns the content of a file of the project, or decodes it as YAML.
func read(t *testing.T, name string, value any) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err == nil && value != nil {
		documents := bytes.Split(data, []byte("\n---\n"))
		err = yaml.Unmarshal(documents[len(documents)-1], value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// expect fails unless a text has all parts.
func expect(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s has not %q:\n%s", what, part, text)
		}
	}
}

var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

// runAction runs the steps of the action as GitHub does, with inputs, and returns the output of the last step.
func (w *workspace) runAction(t *testing.T, inputs map[string]string) (stdout, summary string, code int) {
	t.Helper()
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				Shell, Run string
				Env        map[string]string
			}
		}
	}
	read(t, "packaging/github/action.yml", &action)
	paths, summaryFile := filepath.Join(t.TempDir(), "path"), filepath.Join(t.TempDir(), "summary")
	env := w.env
	defer func() { w.env = env }()
	for _, step := range action.Runs.Steps {
		added, _ := os.ReadFile(paths) // missing before the first step
		w.env = append([]string{"GITHUB_PATH=" + paths, "GITHUB_STEP_SUMMARY=" + summaryFile}, env...)
		for _, dir := range strings.Fields(string(added)) {
			w.env = append(w.env, "PATH="+dir+":"+w.bin+":/usr/bin:/bin")
		}
		for name, value := range step.Env {
			w.env = append(w.env, name+"="+expression.ReplaceAllStringFunc(value, func(text string) string {
				for part := range strings.SplitSeq(expression.FindStringSubmatch(text)[1], " || ") {
					input := strings.TrimPrefix(part, "inputs.")
					if value := inputs[input]; value != "" {
						return value
					}
					if value := action.Inputs[input].Default; value != "" {
						return value
					}
				}
				return ""
			}))
		}
		if step.Shell != "bash" {
			t.Fatalf("shell %q, want bash", step.Shell)
		}
		script := filepath.Join(t.TempDir(), "step.sh")
		if err := os.WriteFile(script, []byte(step.Run), 0o600); err != nil {
			t.Fatal(err)
		}
		var log string
		if stdout, log, code = w.run(t, "bash", "--noprofile", "--norc", "-eo", "pipefail", script); code != 0 {
			stdout += log
			break
		}
	}
	text, _ := os.ReadFile(summaryFile) // missing if no step got that far
	return stdout, string(text), code
}

// TestGitHubAction checks a package with annotations and a summary, renders it, and checks it again.
func TestGitHubAction(t *testing.T) {
	w := newWorkspace(t)
	w.install(t, "fnctl", program())
	out, summary, code := w.runAction(t, map[string]string{"directory": "web\nplain"})
	if code == 0 {
		t.Error("a package that is not rendered passes")
	}
	expect(t, "the output", out, "::error file=web/settings.yaml,line=5,title=not rendered::")
	expect(t, "the summary", summary, "### `web` is not rendered\n```diff\n", "+    team: 'shop'\n",
		"plain is not a package: it has no Kptfile")
	if out, _, code = w.runAction(t, map[string]string{"directory": "web", "check": "false"}); code != 0 {
		t.Errorf("render: %s", out)
	}
	out, summary, code = w.runAction(t, map[string]string{"directory": "web", "arguments": "--timeout 1m"})
	if code != 0 || !strings.Contains(summary, "### `web` is rendered\n") || workflowCommands(out) != nil {
		t.Errorf("a rendered package: exit code %d\n%s\n%s", code, out, summary)
	}
}

// workflowCommands returns the lines of a step's output that GitHub's runner obeys. It omits commands that stop or
// resume other commands.
func workflowCommands(output string) (commands []string) {
	resume := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		token, stops := strings.CutPrefix(line, "::stop-commands::")
		switch {
		case resume != "":
			if line == resume {
				resume = ""
			}
		case stops:
			resume = "::" + token + "::"
		case strings.HasPrefix(line, "::"), strings.Contains(line, "##["):
			commands = append(commands, line)
		}
	}
	return commands
}

// TestGitHubActionQuotesLogs shows a function's log, which is not trusted, without obeying its commands, and inside of
// a fence.
func TestGitHubActionQuotesLogs(t *testing.T) {
	w := newWorkspace(t)
	log := "::error::x\n+ ##[error]x\n ```\n  ````\n::stop-commands::x\nno newline"
	w.write(t, "log", log)
	w.install(t, "fnctl", "#!/bin/sh\necho \"::error file=$2::no\"\ncat log >&2\nexit 3\n")
	out, summary, code := w.runAction(t, map[string]string{"directory": "web\nplain"})
	if code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	expect(t, "the output", out, log+"\n")
	want := []string{"::error file=web::no", "::error file=plain::no"}
	if got := workflowCommands(out); !slices.Equal(got, want) {
		t.Errorf("GitHub obeys %q, want %q:\n%s", got, want, out)
	}
	expect(t, "the summary", summary, "\n```````diff\n"+log+"\n```````\n### `plain` is not rendered\n```````diff\n")
	tokens := regexp.MustCompile(`::stop-commands::([0-9a-f]{32})\n`).FindAllStringSubmatch(out, -1)
	if len(tokens) != 2 || tokens[0][1] == tokens[1][1] {
		t.Errorf("tokens %q, want two different ones", tokens)
	}
}

// TestGitHubActionDownloads installs fnctl from a release, unless its checksum is wrong.
func TestGitHubActionDownloads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sha256sum is Linux's")
	}
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	tarred := tar.NewWriter(zipped)
	script := program()
	err := tarred.WriteHeader(&tar.Header{Name: "fnctl", Mode: 0o755, Size: int64(len(script))})
	if _, write := tarred.Write([]byte(script)); errors.Join(err, write, tarred.Close(), zipped.Close()) != nil {
		t.Fatal(err, write)
	}
	name := fmt.Sprintf("fnctl_0.1.0_linux_%s.tar.gz", runtime.GOARCH)
	sum := fmt.Sprintf("%x", sha256.Sum256(archive.Bytes()))
	sums := sum
	releases := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/v0.1.0/" + name:
			_, _ = rw.Write(archive.Bytes())
		case "/v0.1.0/SHA256SUMS":
			_, _ = fmt.Fprintf(rw, "%s  %s\n", sums, name)
		default:
			http.NotFound(rw, req)
		}
	}))
	defer releases.Close()
	w := newWorkspace(t)
	w.env = append(w.env, "FNCTL_RELEASES="+releases.URL)
	if out, _, code := w.runAction(t, map[string]string{"directory": "web", "github.action_ref": "v0.1.0"}); code != 3 {
		t.Errorf("exit code %d, want that of the check\n%s", code, out)
	}
	sums = strings.Repeat("0", len(sum))
	out, _, code := w.runAction(t, map[string]string{"directory": "web", "version": "v0.1.0"})
	if code == 0 || !strings.Contains(out, "FAILED") {
		t.Errorf("a wrong checksum: exit code %d\n%s", code, out)
	}
}

// TestGitLabTemplate runs the job's script: the report of tests is a file, and the diff is in the log.
func TestGitLabTemplate(t *testing.T) {
	w := newWorkspace(t)
	w.install(t, "fnctl", program())
	var template map[string]struct {
		Image     string
		Script    []string
		Artifacts struct{ Reports struct{ JUnit string } }
	}
	read(t, "packaging/gitlab/render.yml", &template)
	job := template["fnctl-render"]
	w.env = append(w.env, "DIRECTORY=web")
	_, log, code := w.run(t, "bash", "-eo", "pipefail", "-c", strings.Join(job.Script, "\n"))
	if code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	expect(t, "the log", log, "+    team: 'shop'\n")
	expect(t, "the report", read(t, filepath.Join(w.dir, "fnctl.xml"), nil), `name="web/settings.yaml"`)
	expect(t, "the image", job.Image, "ghcr.io/krm-function-runner/fnctl:")
}

// TestPreCommitHooks runs the hooks with the files of a commit.
func TestPreCommitHooks(t *testing.T) {
	w := newWorkspace(t)
	w.install(t, "fnctl", program())
	var hooks []struct {
		ID, Entry, Language, Files string
		Args                       []string
	}
	read(t, "../.pre-commit-hooks.yaml", &hooks)
	commit := []string{"web/settings.yaml", "web/inner/Kptfile", "plain/settings.yaml"}
	outcomes := map[string]int{"fnctl-render-check": 3, "fnctl-render": 0}
	for _, hook := range hooks {
		entry, err := filepath.Abs("../" + hook.Entry)
		if err != nil || hook.Language != "script" {
			t.Fatal(err, hook.Language)
		}
		for _, file := range commit {
			if !regexp.MustCompile(hook.Files).MatchString(file) {
				t.Errorf("%s leaves out %s", hook.ID, file)
			}
		}
		_, log, code := w.run(t, append(append([]string{entry}, hook.Args...), commit...)...)
		if code != outcomes[hook.ID] || strings.Count(log, "Ran 2 functions in 2 packages") != 1 {
			t.Errorf("%s: exit code %d, want %d and one render\n%s", hook.ID, code, outcomes[hook.ID], log)
		}
	}
	hook, err := filepath.Abs("packaging/pre-commit.sh")
	if err != nil {
		t.Fatal(err)
	}
	if _, log, code := w.run(t, hook, "--check", "plain/settings.yaml"); code != 0 || log != "" {
		t.Errorf("a file of no package: exit code %d\n%s", code, log)
	}
}

// TestArgoCDPlugin runs the plugin's command in an application: Argo CD gets all resources but local ones.
func TestArgoCDPlugin(t *testing.T) {
	w := newWorkspace(t)
	w.install(t, "fnctl", program())
	var plugin struct {
		Spec struct {
			Discover struct{ FileName string }
			Generate struct{ Command, Args []string }
		}
	}
	read(t, "packaging/argocd/plugin.yaml", &plugin)
	w.dir = filepath.Join(w.dir, "web")
	if _, err := os.Stat(filepath.Join(w.dir, plugin.Spec.Discover.FileName)); err != nil {
		t.Error(err)
	}
	command := slices.Concat(plugin.Spec.Generate.Command, plugin.Spec.Generate.Args)
	out, log, code := w.run(t, command...)
	if want := "---\n" + configMap + "  labels:\n    team: 'shop'\n"; code != 0 || out != want {
		t.Errorf("exit code %d, and\n%swant\n%s%s", code, out, want, log)
	}
	w.write(t, "Kptfile", strings.Replace(stale, "label:v1", "none:v1", 1))
	if out, _, code = w.run(t, command...); code == 0 || out != "" {
		t.Errorf("a function that is not there: exit code %d\n%s", code, out)
	}
}

// TestFluxPushesWhatIsRendered runs the commands of the document with a flux that lists what it gets.
func TestFluxPushesWhatIsRendered(t *testing.T) {
	w := newWorkspace(t)
	w.install(t, "fnctl", program())
	w.install(t, "flux", "#!/bin/sh\necho \"$@\"\ncat rendered/settings.yaml\n")
	_, block, _ := strings.Cut(read(t, "../docs/ci.md", nil), "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	out, log, code := w.run(t, "bash", "-euc", "URL=u REVISION=r\n"+strings.Replace(block, " --local", "", 1))
	if code != 0 {
		t.Errorf("exit code %d\n%s", code, log)
	}
	expect(t, "the artifact", out, "push artifact oci://registry.example/web:latest --path ./rendered", "team: 'shop'")
}

// TestImageHasWhatCIUses checks the user and the program of the image, and that a release builds it.
// TestImageRendersPackages checks its packages.
func TestImageHasWhatCIUses(t *testing.T) {
	dockerfile := read(t, "packaging/image/Dockerfile", nil)
	expect(t, "the image", dockerfile, "USER 999", "COPY $TARGETPLATFORM/fnctl ")
	expect(t, "the release", read(t, "../.goreleaser.yaml", nil), "fnctl/packaging/image/Dockerfile")
	expect(t, "the plugin's sidecar", read(t, "packaging/argocd/kustomization.yaml", nil), "runAsUser: 999")
}
