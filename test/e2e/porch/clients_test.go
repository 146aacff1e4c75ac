// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porch_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// command is a program of users. It keeps nothing in the home directory.
func command(ctx context.Context, t testing.TB, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir())
	return cmd
}

// run runs a program with an input, and returns its output.
func run(ctx context.Context, t testing.TB, input, program string, args ...string) string {
	t.Helper()
	cmd := command(ctx, t, program, args...)
	cmd.Stdin = strings.NewReader(input)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, &errors)
	}
	return string(out)
}

// kubectlTimeout is the timeout of `kubectl wait`. Its default is too short for Porch on a busy machine.
const kubectlTimeout = "--timeout=5m"

func kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return run(suite.Context(t), t, "", "kubectl", args...)
}

// busy are the answers of a Porch that reads the files of its clone of a repository while it writes
// them: nothing has been changed, and the next attempt may succeed.
var busy = regexp.MustCompile(`ref file is empty|remote not found`)

// try runs an action on the packages of users, and returns what Porch answers.
func try(t testing.TB, action string, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"rpkg", action, "--namespace=" + users}, args...)
	for ctx := suite.Context(t); ; {
		out, err := command(ctx, t, porch(t, "porchctl"), args...).CombinedOutput()
		if err == nil || ctx.Err() != nil || !busy.Match(out) {
			return string(out), err
		}
		t.Logf("porchctl %s is tried again: %s", action, out)
	}
}

// porchctl runs an action on the packages of users, which succeeds.
func porchctl(t testing.TB, action string, args ...string) {
	t.Helper()
	if answer, err := try(t, action, args...); err != nil {
		t.Errorf("porchctl %s %s: %v\n%s", action, strings.Join(args, " "), err, answer)
	}
}

// register registers repositories of the Git server, which has one of any name.
func register(t testing.TB, names ...string) {
	t.Helper()
	const repository = `
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  type: git
  git: {repo: "http://git-server.NAMESPACE.svc:8080/NAME", branch: main}
---`
	var documents strings.Builder
	for _, name := range names {
		documents.WriteString(strings.NewReplacer("NAMESPACE", users, "NAME", name).Replace(repository))
	}
	run(suite.Context(t), t, documents.String(), "kubectl", "apply", "-f", "-")
	kubectl(t, "-n", users, "wait", "--for=condition=Ready", kubectlTimeout, repositories, "--all")
}

// lifecycle returns the state of a package revision.
func lifecycle(t testing.TB, revision string) string {
	t.Helper()
	return kubectl(t, "-n", users, "get", "packagerevision", revision, "-o", "jsonpath={.spec.lifecycle}")
}

// stored returns the files of a package revision.
func stored(t testing.TB, revision string) map[string]string {
	t.Helper()
	var found struct {
		Spec struct {
			Resources map[string]string `json:"resources"`
		} `json:"spec"`
	}
	out := kubectl(t, "-n", users, "get", "packagerevisionresources", revision, "-o", "json")
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Errorf("read %s: %v:\n%s", revision, err, out)
	}
	return found.Spec.Resources
}

// published returns a file of a published package revision, from the Git server.
func published(t testing.TB, repository, tag, file string) string {
	t.Helper()
	address := kubectl(t, "-n", users, "get", "service", "git-server", "-o", "jsonpath={.spec.clusterIP}")
	dir := t.TempDir()
	ctx := suite.Context(t)
	run(ctx, t, "", "git", "clone", "--quiet", "--branch="+tag, "http://"+address+":8080/"+repository, dir)
	return run(ctx, t, "", "git", "-C", dir, "show", "HEAD:"+file)
}

// since returns the time since then for users.
func since(then time.Time) time.Duration { return time.Since(then).Round(10 * time.Millisecond) }
