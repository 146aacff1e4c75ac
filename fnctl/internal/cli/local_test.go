// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package cli_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner/localrunnertest"
)

// TestLocal runs the scripts of functions on this machine, with images in a private registry and in one
// without TLS.
func TestLocal(t *testing.T) {
	private, open := localrunnertest.Private(t), localrunnertest.Open(t)
	private.Push(t, "fn/echo:v1.0.0", "echo")
	private.Push(t, "fn/echo:v1.1.0", "echo")
	open.Push(t, "fn/exit:v1", "exit1", "replaced")
	open.Push(t, "fn/env:v1", "env", "replaced")
	open.Push(t, "fn/help:v1", "help=stdout", "replaced by --help, as by docker run")
	open.Push(t, "fn/usage:v1", "help=stderr", "replaced")
	settings := t.TempDir()
	login := base64.StdEncoding.EncodeToString([]byte(localrunnertest.User + ":" + localrunnertest.Password))
	for name, content := range map[string]string{
		"ca.crt":      string(private.Authority()),
		"config.json": fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, private.Host, login),
	} {
		if err := os.WriteFile(filepath.Join(settings, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := localrunnertest.SharedDir(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/local",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			// subst FROM TO copies a file, with the variables in it replaced.
			"subst": func(ts *testscript.TestScript, _ bool, args []string) {
				content := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(content), 0o600))
			},
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("DOCKER_CONFIG", settings)
			env.Setenv("FNR_SANDBOX_STORE", filepath.Join(store, filepath.Base(env.WorkDir)))
			env.Setenv("FNR_REGISTRY_TLS_PATHS", private.Host+"="+settings)
			env.Setenv("FNR_INSECURE_REGISTRIES", open.Host)
			env.Setenv("PRIVATE", private.Host)
			env.Setenv("OPEN", open.Host)
			env.Setenv("HOST", strings.Repeat("a", 64)+".example")
			return nil
		},
	})
}

// TestLocalWithoutNamespaces renders a package where the kernel refuses further namespaces, as in jobs of CI systems.
func TestLocalWithoutNamespaces(t *testing.T) {
	registry := localrunnertest.Open(t)
	registry.Push(t, "fn/echo:v1", "echo")
	dir := t.TempDir()
	for name, content := range map[string]string{
		"Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: web}\n" +
			"pipeline: {mutators: [{image: " + registry.Host + "/fn/echo:v1}]}\n",
		"service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "sh", "-ec",
		`echo 0 >/proc/sys/user/max_user_namespaces; exec fnctl render "$0" --local --phases -o stdout`, dir)
	cmd.Env = append(os.Environ(), //nolint:forbidigo // it has testscript's fnctl in PATH
		"FNR_INSECURE_REGISTRIES="+registry.Host, "FNR_SANDBOX_STORE="+filepath.Join(t.TempDir(), "images"))
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("kind: Service")) ||
		!bytes.Contains(out, []byte("Sandboxes by direct: Landlock, seccomp and limits, but no namespaces")) {
		t.Errorf("%v\n%s", err, out)
	}
}
