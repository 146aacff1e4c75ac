// SPDX-License-Identifier: Apache-2.0

// Package guide_test follows the documents: the commands of docs/write-a-function.md, of docs/first-steps and of
// the README run in their order, and what they show of their output must be there. All links lead somewhere.
package guide_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

const root = "../.."

// block is a block of code of a document.
type block struct{ language, text string }

// blocks returns the blocks of code of a document.
func blocks(t *testing.T, document string) []block {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	var found []block
	for i, part := range strings.Split(string(data), "```") {
		if i%2 == 0 {
			continue // text around blocks
		}
		language, text, _ := strings.Cut(part, "\n")
		found = append(found, block{language, text})
	}
	return found
}

// TestGuide runs the guide, that of TypeScript if npm is there: make says so if it is not. It begins in a directory
// with a workspace of Go, like readers who have just built fnctl in a clone.
func TestGuide(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.work"), []byte("go 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tools := filepath.Dir(gobuild.Program(t, filepath.Join(root, "fnctl"), "."))
	env := append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "GOWORK=", "GONOSUMDB=*",
		"GOPROXY="+proxies(t), "HOME="+t.TempDir(), "GOPATH="+goEnv(t, "GOPATH"), "GOCACHE="+goEnv(t, "GOCACHE"),
		"GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	_, err := exec.LookPath("npm")
	typescript := err == nil
	output, ran := "", 0
	for _, b := range blocks(t, "docs/write-a-function.md") {
		switch b.language {
		case "sh", "sh typescript":
			if output = ""; b.language == "sh" || typescript {
				output, dir = run(t, dir, env, b.text)
				ran++
			}
		case "diff", "text":
			if output != "" && !strings.Contains(output, b.text) {
				t.Errorf("the guide shows\n%s\nof\n%s", b.text, output)
			}
		}
	}
	if ran < 6 {
		t.Errorf("only %d blocks ran", ran)
	}
}

// run runs a block in a directory. It returns the block's output and errors, and the directory where the block ends.
func run(t *testing.T, dir string, env []string, script string) (output, end string) {
	t.Helper()
	ended := filepath.Join(t.TempDir(), "directory")
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", script+"\npwd >'"+ended+"'")
	cmd.Dir = dir
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	text, err := os.ReadFile(ended)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), strings.TrimSpace(string(text))
}

// proxies has modules from the module cache first: most machines have them there.
func proxies(t *testing.T) string {
	t.Helper()
	return "file://" + filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download") + "," + goEnv(t, "GOPROXY")
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
