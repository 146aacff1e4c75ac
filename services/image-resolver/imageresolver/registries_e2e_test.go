// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package imageresolver_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/crypto/bcrypt"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// These tests run the registry of the distribution project, as Debian's package
// docker-registry has it, on ports of this machine.

// process is a program that has been started.
type process struct {
	cmd *exec.Cmd
}

// launch starts a program and waits until it has written a line with that text.
func launch(t *testing.T, cmd *exec.Cmd, ready string) *process {
	t.Helper()
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	p := &process{cmd: cmd}
	t.Cleanup(func() { p.stop() })
	var said strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), ready) {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return p
		}
		said.WriteString(lines.Text() + "\n")
	}
	t.Fatalf("%s ended before it was ready: %s", cmd.Path, &said)
	return nil
}

// stop ends the program, and returns how it ended.
func (p *process) stop() error {
	if p.cmd.ProcessState != nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.cmd.Wait()
}

// distribution starts a registry with what is added to its configuration, which
// may use the directory that it gets.
func distribution(t *testing.T, directory, http, more string) (host string, p *process) {
	t.Helper()
	host = freeport.Address(t)
	config := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %s/data}}\nhttp: {addr: %q%s}\n%s\n",
		directory, host, http, more)
	testcert.Write(t, directory, "config.yml", []byte(config))
	return host, launch(t, exec.Command("docker-registry", "serve", filepath.Join(directory, "config.yml")),
		"listening on")
}

// push puts an image into a registry and returns its digest.
func push(t *testing.T, at string, options ...remote.Option) string {
	t.Helper()
	ref, err := name.ParseReference(at)
	if err != nil {
		t.Fatal(err)
	}
	image := testregistry.Image(t, function)
	if err := remote.Write(ref, image, options...); err != nil {
		t.Fatal(err)
	}
	return digest(t, image)
}

func unkept() remote.Option { return remote.WithTransport(&http.Transport{DisableKeepAlives: true}) }

// expectClass resolves an image and compares how that ends.
func expectClass(t *testing.T, cfg imageresolver.Config, image string, class fault.Class, says ...string) {
	t.Helper()
	r, said := start(t, cfg)
	_, err := resolve(t, r, image)
	if err == nil || fault.Of(err) != class {
		t.Errorf("%v of class %v, want %v", err, fault.Of(err), class)
		return
	}
	t.Log(err)
	expectText(t, err, says...)
	expectNoSecret(t, said.all())
}

func TestDistributionOpen(t *testing.T) {
	host, registry := distribution(t, t.TempDir(), "", "")
	old := push(t, host+"/org/fn:v0.1.0", unkept())
	push(t, host+"/org/fn:v0.1.1", unkept())
	cfg := newConfig(t)
	cfg.InsecureRegistries = []string{host}
	r, _ := start(t, cfg)
	got, err := resolve(t, r, host+"/org/fn:v0.1.0")
	if err != nil || got.GetDigest() != old || got.GetPullCredentials() {
		t.Errorf("%v, %v, want %s without credentials", got, err, old)
	}
	got, err = r.ResolveImage(t.Context(),
		&imageresolverv1.ResolveImageRequest{Image: host + "/org/fn", TagConstraint: "~0.1"})
	if err != nil || !strings.HasSuffix(got.GetReference(), ":v0.1.1") {
		t.Errorf("%v, %v, want v0.1.1", got, err)
	}
	moved := push(t, host+"/org/fn:v0.1.0", unkept())
	got, err = r.ResolveImage(t.Context(),
		&imageresolverv1.ResolveImageRequest{Image: host + "/org/fn:v0.1.0", Refresh: true})
	if err != nil || got.GetDigest() != moved {
		t.Errorf("%v, %v, want the moved tag's %s", got, err, moved)
	}
	expectClass(t, cfg, host+"/org/fn:v9", fault.Precondition, "MANIFEST_UNKNOWN", "HTTP 404")
	expectClass(t, cfg, host+"/unknown/fn:v1", fault.Precondition, "MANIFEST_UNKNOWN")
	if err := registry.stop(); err != nil {
		t.Log(err)
	}
	expectClass(t, cfg, host+"/org/fn:v0.1.0", fault.Unavailable, "connection refused")
	if got, err := resolve(t, r, host+"/org/fn:v0.1.0"); err != nil || got.GetDigest() != moved {
		t.Errorf("known image while the registry is down: %v, %v", got, err)
	}
}

func TestDistributionWithPassword(t *testing.T) {
	directory := t.TempDir()
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	testcert.Write(t, directory, "htpasswd", fmt.Appendf(nil, "user:%s\n", hash))
	host, _ := distribution(t, directory, "", fmt.Sprintf("auth: {htpasswd: {realm: test, path: %s/htpasswd}}", directory))
	want := push(t, host+"/fn:v1", unkept(), remote.WithAuth(&authn.Basic{Username: "user", Password: "right"}))
	cfg := newConfig(t)
	cfg.InsecureRegistries = []string{host}
	expectClass(t, cfg, host+"/fn:v1", fault.Precondition, "UNAUTHORIZED: authentication required",
		"no credentials are configured")
	cfg.AuthSecretPath = filepath.Join(directory, "docker.json")
	dockerConfig(t, cfg.AuthSecretPath, host, "user", password)
	expectClass(t, cfg, host+"/fn:v1", fault.Precondition, "UNAUTHORIZED", cfg.AuthSecretPath)
	dockerConfig(t, cfg.AuthSecretPath, host, "user", "right")
	r, _ := start(t, cfg)
	got, err := resolve(t, r, host+"/fn:v1")
	if err != nil || got.GetDigest() != want || !got.GetPullCredentials() {
		t.Errorf("%v, %v, want %s with credentials", got, err, want)
	}
}

func TestDistributionWithTLS(t *testing.T) {
	authority := testcert.NewAuthority(t)
	encrypted := func(directory string, end time.Time) string {
		cert, key := authority.Issue(t, end)
		testcert.Write(t, directory, "tls.crt", cert)
		testcert.Write(t, directory, "tls.key", key)
		host, _ := distribution(t, directory,
			fmt.Sprintf(", tls: {certificate: %s/tls.crt, key: %s/tls.key}", directory, directory), "")
		return host
	}
	host, expired := encrypted(t.TempDir(), time.Now().Add(time.Hour)), encrypted(t.TempDir(), time.Now().Add(-time.Hour))
	cfg, trusted := newConfig(t), t.TempDir()
	cfg.RegistryTLSPaths = imageresolver.Pairs{host: {trusted}, expired: {trusted}}
	expectClass(t, cfg, host+"/fn:v1", fault.Precondition, "unknown authority", "ca.crt")
	testcert.Write(t, trusted, "ca.crt", testcert.NewAuthority(t).PEM)
	expectClass(t, cfg, host+"/fn:v1", fault.Precondition, "unknown authority")
	testcert.Write(t, trusted, "ca.crt", authority.PEM)
	expectClass(t, cfg, host+"/fn:v1", fault.Precondition, "MANIFEST_UNKNOWN")
	expectClass(t, cfg, expired+"/fn:v1", fault.Precondition, "expired")
}

// TestProgram runs the service as it is deployed: by environment variables.
func TestProgram(t *testing.T) {
	host, _ := distribution(t, t.TempDir(), "", "")
	want := push(t, host+"/fn:v1", unkept())
	binary := gobuild.Program(t, "..", ".")
	address := freeport.Address(t)
	t.Setenv("FNR_ADDRESS", address)
	t.Setenv("FNR_INSECURE_REGISTRIES", host)
	t.Setenv("FNR_PLATFORM", "linux/amd64")
	t.Setenv("FNR_TELEMETRY_METRICS_ADDRESS", "off")
	t.Setenv("FNR_SERVE_DRAIN_DELAY", "0s")
	p := launch(t, exec.Command(binary), `"endpoint":"image-resolver"`)
	transport := &http.Transport{DisableKeepAlives: true}
	client := imageresolverv1connect.NewImageResolverServiceClient(&http.Client{Transport: transport}, "http://"+address)
	got, err := client.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: host + "/fn:v1"})
	if err != nil || got.GetDigest() != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	if err := p.stop(); err != nil {
		t.Errorf("the program ended with %v, want an orderly end", err)
	}
}
