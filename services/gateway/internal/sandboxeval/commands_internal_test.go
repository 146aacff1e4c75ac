// SPDX-License-Identifier: Apache-2.0

package sandboxeval

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
)

// starts counts the commands that are made, and returns them by what they start.
type starts struct{ made []sandbox.Function }

func (s *starts) start(fn sandbox.Function) (fnproc.Command, *fnproc.StartError) {
	s.made = append(s.made, fn)
	return fnproc.Command{Path: fmt.Sprintf("%+v", fn)}, nil
}

// heldImage returns an image with a program.
func heldImage(t testing.TB) *openImage {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "fn"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	k := &keeper{images: map[string]*openImage{}}
	image, err := k.openImage("sha256:a", func() (string, func(), error) { return root, func() {}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// runOf returns a run whose resolved image is a new object.
func runOf(change func(*run)) run {
	r := run{name: "fn@sha256:a", resolved: &imageresolverv1.ResolveImageResponse{
		Digest: "sha256:a", Command: []string{"/fn", "a"}, Env: []string{"A=b"}, WorkingDir: "srv", User: "1000",
	}}
	change(&r)
	return r
}

// TestCommandsAreMadeOnce has each difference that a function notices make a command of its own.
func TestCommandsAreMadeOnce(t *testing.T) {
	var s starts
	image := heldImage(t)
	usual, err := image.commandFor(runOf(func(*run) {}), s.start)
	if err != nil || len(s.made) != 1 || s.made[0].Program[0] != "/fn" || s.made[0].Dir != "/srv" {
		t.Fatalf("got %v, made %+v", err, s.made)
	}
	for reason, change := range map[string]func(*run){
		"another name":    func(r *run) { r.name = "other@sha256:a" },
		"the network":     func(r *run) { r.network = true },
		"--env":           func(r *run) { r.resolved.Env = append(r.resolved.Env, "C=d") },
		"other arguments": func(r *run) { r.resolved.Command = []string{"/fn", "b"} },
		"a directory":     func(r *run) { r.resolved.WorkingDir = "" },
		"a user":          func(r *run) { r.resolved.User = "1001" },
	} {
		before := len(s.made)
		changed, err := image.commandFor(runOf(change), s.start)
		if err != nil || len(s.made) != before+1 || changed.Path == usual.Path {
			t.Errorf("%s: got %v, %d more commands made, want one of its own", reason, err, len(s.made)-before)
		}
		again, err := image.commandFor(runOf(change), s.start)
		if err != nil || len(s.made) != before+1 || again.Path != changed.Path {
			t.Errorf("%s: got %v, %d more commands made, want the same one again", reason, err, len(s.made)-before)
		}
	}
}

func TestKeptCommandsAreBounded(t *testing.T) {
	var s starts
	image := heldImage(t)
	for i := range 3 * maxCommands {
		if _, err := image.commandFor(runOf(func(r *run) { r.name = strconv.Itoa(i) }), s.start); err != nil {
			t.Fatal(err)
		}
	}
	if len(image.commands) != maxCommands {
		t.Errorf("%d commands are kept, want %d", len(image.commands), maxCommands)
	}
	if _, err := image.commandFor(runOf(func(r *run) { r.resolved.Command = []string{"/none"} }), s.start); err == nil {
		t.Error("a program that is not there was found")
	}
}
