// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestImagesAreServed serves the images of two programs of this machine twice from the same directory.
func TestImagesAreServed(t *testing.T) {
	shell, err := programFiles("/bin/sh", "sh")
	if err != nil {
		t.Fatal(err)
	}
	specs := []image.Spec{functionImage("scale", []string{"/scale.sh"}, append(shell, shell...)...)}
	dir := t.TempDir()
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		reader, writer := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			err := serveRegistry(ctx, dir, specs, writer)
			_ = writer.CloseWithError(errors.Join(err, io.EOF))
			ended <- err
		}()
		address := make([]byte, 100)
		n, err := reader.Read(address)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{}
		client := image.Registry{Host: strings.TrimSpace(string(address[:n])), Auth: authn.Anonymous, Transport: transport}
		got, err := client.Pull(t.Context(), "scale:v1")
		if err != nil {
			t.Fatal(err)
		}
		config, err := got.ConfigFile()
		if err != nil || config.Config.User == "" || config.Config.Entrypoint[0] != "/scale.sh" {
			t.Errorf("got %+v, %v", config, err)
		}
		if _, err := client.Push(t.Context(), "other:v1", got); err == nil || !strings.Contains(err.Error(), "405") {
			t.Errorf("a push got %v, want that it is rejected", err)
		}
		transport.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestImagesThatCannotBeMade has a registry end if its images have no files.
func TestImagesThatCannotBeMade(t *testing.T) {
	missing := image.File{Path: "/function", Source: filepath.Join(t.TempDir(), "no")}
	specs := []image.Spec{functionImage("team", nil, missing)}
	if err := serveRegistry(t.Context(), t.TempDir(), specs, io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the file is missing", err)
	}
	_, err := sources{packages: t.TempDir()}.images()
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that Node.js is missing", err)
	}
}

// TestFunctions runs the functions that are scripts.
func TestFunctions(t *testing.T) {
	tests := map[string]struct {
		program     []string
		input, want string
		code        int
	}{
		"scale":       {[]string{"sh", "scale/scale.sh"}, "spec:\n  replicas: 1\n", "spec:\n  replicas: 3\n", 0},
		"fixed tag":   {[]string{"node", "pinned/index.js"}, "- image: a.b:5/c:v1\n", "- image: a.b:5/c:v1\n", 0},
		"digest":      {[]string{"node", "pinned/index.js"}, "image: a@sha256:1\n", "image: a@sha256:1\n", 0},
		"no tag":      {[]string{"node", "pinned/index.js"}, "image: a.b:5/c\n", `"a.b:5/c has no fixed tag"`, 1},
		"a tag moves": {[]string{"node", "pinned/index.js"}, "image: 'a:latest'\n", `"a:latest has no fixed tag"`, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(tc.program[0]); err != nil {
				t.Skip("it needs " + tc.program[0])
			}
			cmd := exec.CommandContext(t.Context(), tc.program[0], tc.program[1:]...)
			var out bytes.Buffer
			cmd.Stdin = strings.NewReader(tc.input)
			cmd.Stdout = &out
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(out.String(), tc.want) {
				t.Errorf("exit code %d, output %s, want %d, %s", code, &out, tc.code, tc.want)
			}
		})
	}
}
