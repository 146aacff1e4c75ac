// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/credentials"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func auth(user string) string {
	return fmt.Sprintf(`{"auth":%q}`, base64.StdEncoding.EncodeToString([]byte(user+":secret")))
}

// write makes a docker configuration file.
func write(t *testing.T, path, content string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "config.json")
	}
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil { // in one step, as the kubelet and docker do
		t.Fatal(err)
	}
	return path
}

// helpers puts credential helpers on the path: shell scripts by their names.
func helpers(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(
			filepath.Join(dir, "docker-credential-"+name),
			[]byte("#!/bin/sh\n"+script),
			0o700,
		); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return dir
}

func open(t *testing.T, changed func(), files ...string) *credentials.Store {
	t.Helper()
	s, err := credentials.New(credentials.Config{Files: files, Log: slog.New(slog.DiscardHandler), Changed: changed})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLookup(t *testing.T) {
	helpers(t, map[string]string{
		"echo":  `read server; echo "{\"Username\":\"helper for $server\",\"Secret\":\"s\"}"`,
		"empty": `echo "credentials not found in native keychain"; exit 1`,
	})
	tests := map[string]struct {
		reason     string
		config     string
		repository string
		want       string // the user
	}{
		"host":          {"the plain case", `{"auths":{"ghcr.io":` + auth("u") + `}}`, "ghcr.io/org/fn", "u"},
		"host and port": {"the port is part of the host", `{"auths":{"r.io:5000":` + auth("u") + `}}`, "r.io:5000/fn", "u"},
		"other port":    {"another port is another registry", `{"auths":{"r.io:5000":` + auth("u") + `}}`, "r.io/fn", ""},
		"other host": {
			"a registry gets no other's credentials", `{"auths":{"ghcr.io":` + auth("u") + `}}`, "ghcr.io.evil.example/fn", "",
		},
		"URL": {"docker once wrote URLs", `{"auths":{"https://r.io/v2/":` + auth("u") + `}}`, "r.io/fn", "u"},
		"hub, legacy key": {
			"docker's key for docker.io", `{"auths":{"https://index.docker.io/v1/":` + auth("u") + `}}`,
			"docker.io/library/busybox", "u",
		},
		"hub, plain key": {"what users write", `{"auths":{"docker.io":` + auth("u") + `}}`, "docker.io/library/busybox", "u"},
		"hub, registry": {
			"the host that serves it", `{"auths":{"registry-1.docker.io":` + auth("u") + `}}`, "docker.io/org/fn", "u",
		},
		"hub, third name": {
			"it is the same registry", `{"auths":{"registry.hub.docker.com":` + auth("u") + `}}`, "docker.io/org/fn", "u",
		},
		"capitals":      {"host names have no case", `{"auths":{"GHCR.io":` + auth("u") + `}}`, "ghcr.io/org/fn", "u"},
		"port left out": {"it is meant anyway", `{"auths":{"ghcr.io:443":` + auth("u") + `}}`, "ghcr.io/org/fn", "u"},
		"port in the image": {
			"it is meant anyway", `{"auths":{"https://ghcr.io/v2/":` + auth("u") + `}}`, "Ghcr.io:443/org/fn", "u",
		},
		"helper, with port": {"it is meant anyway", `{"credHelpers":{"R.io:443":"echo"}}`, "r.io/fn", "helper for r.io"},
		"narrowest path": {
			"the longest path counts",
			`{"auths":{"r.io":` + auth("host") + `,"r.io/a":` + auth("a") + `,"r.io/a/b":` + auth("b") + `}}`, "r.io/a/b/fn",
			"b",
		},
		"path elsewhere": {
			"other paths have the host's", `{"auths":{"r.io":` + auth("host") + `,"r.io/a":` + auth("a") + `}}`, "r.io/ab/fn",
			"host",
		},
		"user and password": {"not encoded", `{"auths":{"r.io":{"username":"u","password":"p"}}}`, "r.io/fn", "u"},
		"helper":            {"a helper for the host", `{"credHelpers":{"r.io":"echo"}}`, "r.io/fn", "helper for r.io"},
		"helper first": {
			"docker asks the helper first", `{"auths":{"r.io":` + auth("u") + `},"credHelpers":{"r.io":"echo"}}`, "r.io/fn",
			"helper for r.io",
		},
		"helper is empty": {
			"then what the file has", `{"auths":{"r.io":` + auth("u") + `},"credHelpers":{"r.io":"empty"}}`, "r.io/fn", "u",
		},
		"store": {"a store for all hosts", `{"auths":{"r.io":{}},"credsStore":"echo"}`, "r.io/fn", "helper for r.io"},
		"store for the hub": {
			"the store knows it by its old name", `{"credsStore":"echo"}`, "docker.io/org/fn",
			"helper for https://index.docker.io/v1/",
		},
		"store is empty": {"nothing anywhere", `{"credsStore":"empty"}`, "r.io/fn", ""},
		"empty file":     {"docker reads that as nothing", ``, "r.io/fn", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, nil, write(t, "", tc.config))
			got, err := s.Lookup(t.Context(), tc.repository)
			if err != nil || got.Auth.Username != tc.want || got.IsZero() != (tc.want == "") {
				t.Errorf("user %q, %v, want %q: %s", got.Auth.Username, err, tc.want, tc.reason)
			}
		})
	}
}

func TestEachRegistryHasTheFirstFileThatKnowsIt(t *testing.T) {
	private := write(t, "", `{"auths":{"r.io":`+auth("private")+`}}`)
	fallback := write(t, "", `{"auths":{"r.io":`+auth("default")+`,"ghcr.io":`+auth("default")+`}}`)
	s := open(t, nil, filepath.Join(t.TempDir(), "not there yet"), private, fallback)
	for repository, want := range map[string]string{"r.io/fn": private, "ghcr.io/fn": fallback, "quay.io/fn": ""} {
		if got, err := s.Lookup(t.Context(), repository); err != nil || got.Origin != want {
			t.Errorf("credentials of %s are from %q, %v, want %q", repository, got.Origin, err, want)
		}
	}
}

func TestIdentityToken(t *testing.T) {
	helpers(t, map[string]string{"token": `echo '{"Username":"<token>","Secret":"t"}'`})
	s := open(t, nil, write(t, "", `{"auths":{"own.io":{"identitytoken":"i"}},"credHelpers":{"r.io":"token"}}`))
	for repository, want := range map[string]string{"r.io/fn": "t", "own.io/fn": "i"} {
		if got, err := s.Lookup(t.Context(), repository); err != nil || got.Auth.IdentityToken != want ||
			got.Auth.Username != "" {
			t.Errorf("identity token of %s is %q, %v, want %q", repository, got.Auth.IdentityToken, err, want)
		}
	}
}

func TestHelperFails(t *testing.T) {
	const answer = `{"Username":"u","Secret":"hunter2-hunter2"}`
	tests := map[string]struct {
		reason, script, want string
	}{
		"complains":      {"its own words help", `echo "no session" >&2; exit 3`, "exit status 3: no session"},
		"babbles":        {"what it wrote may be secret", `echo hunter2`, "not valid JSON"},
		"cut off":        {"what it wrote may be secret", `echo '{"Secret":"hunter2'`, "not valid JSON"},
		"no secret":      {"it serves for nothing", `echo '{"Username":"u"}'`, "without a secret"},
		"JSON of others": {"it serves for nothing", `echo '{"error":"hunter2"}'`, "without a secret"},
		"answers, fails": {
			"the answer stays secret", `echo '` + answer + `'; echo "wrote hunter2-hunter2" >&2; exit 1`, "wrote [hidden]",
		},
		"traces": {"scripts do that", `set -x; curl -H "Authorization: Bearer hunter2" 2>/dev/null; exit 1`, "exit status 1"},
		"names a secret": {
			"programs do that",
			`echo 'login with password="hunter2 x", token: hunter2 at https://u:hunter2@h/?sig=hunter2' >&2; exit 1`,
			"login with password=[hidden], token: [hidden] at https://[hidden]@h/",
		},
		"endless answer":   {"memory is bounded", `exec yes hunter2`, "it wrote more than 1 MiB"},
		"endless words":    {"a few of them will do", `yes "no session" | head -c 100000 >&2; exit 1`, "bytes left out"},
		"control sequence": {"errors are read in terminals", `printf '\033[31mno\r\nsession' >&2; exit 1`, "[31mno session"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			helpers(t, map[string]string{"bad": tc.script})
			s := open(t, nil, write(t, "", `{"credHelpers":{"r.io":"bad"},"auths":{"ghcr.io":`+auth("u")+`}}`))
			_, err := s.Lookup(t.Context(), "r.io/fn")
			if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "docker-credential-bad for r.io") ||
				!strings.Contains(err.Error(), tc.want) ||
				strings.Contains(err.Error(), "hunter2") || strings.ContainsAny(err.Error(), "\n\r\x1b") ||
				len(err.Error()) > 700 {
				t.Errorf("%q, want a short Precondition with %q: %s", err, tc.want, tc.reason)
			}
			for repository, user := range map[string]string{"ghcr.io/fn": "u", "quay.io/fn": ""} {
				if got, err := s.Lookup(t.Context(), repository); err != nil || got.Auth.Username != user {
					t.Errorf("%s: %q, %v, want that other registries are not concerned", repository, got.Auth.Username, err)
				}
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		_, err := open(t, nil, write(t, "", `{"credsStore":"nowhere"}`)).Lookup(t.Context(), "r.io/fn")
		if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "docker-credential-nowhere") ||
			!strings.Contains(err.Error(), "add it to the image") {
			t.Errorf("%v, want Precondition with the program's name", err)
		}
	})
}

func TestHelperThatHangsEndsWithItsCaller(t *testing.T) {
	dir := helpers(t, map[string]string{"slow": `echo started > "$(dirname "$0")/started"; exec sleep 1000`})
	started := filepath.Join(dir, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, nil, write(t, "", `{"credsStore":"slow"}`))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Lookup(ctx, "r.io/fn")
		ended <- err
	}()
	if _, err := os.ReadFile(started); err != nil { // which waits for the helper
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; fault.Of(err) != fault.Canceled {
		t.Errorf("%v, want Canceled", err)
	}
	stop(t, s) // and the process has ended too
}

// TestHelperThatHangsEndsWithWhatItCalled has a script for a helper.
func TestHelperThatHangsEndsWithWhatItCalled(t *testing.T) {
	dir := helpers(t, map[string]string{"script": `(sleep 1000; true) > "$(dirname "$0")/held"; true`})
	held := filepath.Join(dir, "held")
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, nil, write(t, "", `{"credsStore":"script"}`))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Lookup(ctx, "r.io/fn")
		ended <- err
	}()
	pipe, err := os.Open(held) // once the script has
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	cancel()
	if _, err := io.ReadAll(pipe); err != nil { // which lasts as long as anything that it called
		t.Error(err)
	}
	if err := <-ended; fault.Of(err) != fault.Canceled {
		t.Errorf("%v, want Canceled", err)
	}
	stop(t, s)
}

// stop runs s with nothing left to do, which waits for its processes.
func stop(t *testing.T, s *credentials.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestHelperIsNotRunForEachLookup(t *testing.T) {
	dir := helpers(t,
		map[string]string{"count": `echo run >> "$(dirname "$0")/runs"; echo '{"Username":"u","Secret":"s"}'`})
	s := open(t, nil, write(t, "", `{"credsStore":"count"}`))
	for n := range 3 {
		if got, err := s.Lookup(t.Context(), "r.io/fn"); err != nil || got.Kept != (n > 0) {
			t.Fatalf("%v, kept from before: %t at lookup %d", err, got.Kept, n)
		}
	}
	if _, err := s.Renew(t.Context(), "r.io/fn"); err != nil {
		t.Fatal(err)
	}
	runs, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil || strings.Count(string(runs), "run") != 2 {
		t.Errorf("runs: %q, %v, want two: one for the lookups, one to renew", runs, err)
	}
}

func TestFileChanges(t *testing.T) {
	path := write(t, "", `{"auths":{"r.io":`+auth("old")+`}}`)
	changed := make(chan struct{}, 10)
	s := open(t, func() { changed <- struct{}{} }, path)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	user := func(look func(context.Context, string) (credentials.Credential, error)) string {
		got, err := look(t.Context(), "r.io/fn")
		if err != nil {
			t.Fatal(err)
		}
		return got.Auth.Username
	}
	write(t, path, `{"auths":{"r.io":`+auth("new")+`}}`)
	<-changed
	if got := user(s.Lookup); got != "new" {
		t.Errorf("user %q after the change, want the new one", got)
	}
	write(t, path, `{"auths":{"r.io":`+auth("newer")+`}}`)
	if got := user(s.Renew); got != "newer" {
		t.Errorf("user %q when renewed, want what the file has now", got)
	}
	write(t, path, `garbage`)
	if got := user(s.Renew); got != "newer" {
		t.Errorf("user %q after the file broke, want the last good one", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestHelpersFailureIsForgottenWithItsFile(t *testing.T) {
	dir := helpers(t,
		map[string]string{"sick": `test -e "$(dirname "$0")/well" || exit 1; echo '{"Username":"u","Secret":"s"}'`})
	path := write(t, "", `{"credsStore":"sick"}`)
	changed := make(chan struct{}, 10)
	s := open(t, func() { changed <- struct{}{} }, path)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	if _, err := s.Lookup(t.Context(), "r.io/fn"); err == nil {
		t.Fatal("the helper does not fail")
	}
	write(t, filepath.Join(dir, "well"), "")
	write(t, path, `{"credsStore":"sick","currentContext":"x"}`)
	<-changed
	if got, err := s.Lookup(t.Context(), "r.io/fn"); err != nil || got.Auth.Username != "u" {
		t.Errorf("%q, %v, want that the helper is asked again at once", got.Auth.Username, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNoDockerConfiguration(t *testing.T) {
	for _, content := range []string{`garbage hunter2`, `{"auths":{"r.io":{"auth":"hunter2!"}}}`, `[]`} {
		_, err := credentials.New(
			credentials.Config{Files: []string{write(t, "", content)}, Log: slog.New(slog.DiscardHandler)},
		)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want an error without the content", content, err)
		}
	}
}
