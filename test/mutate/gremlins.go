package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// report is what gremlins writes about a package.
type report struct {
	Killed     int `json:"mutants_killed"`
	Lived      int `json:"mutants_lived"`
	NotCovered int `json:"mutants_not_covered"`
	Files      []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
			Line   int    `json:"line"`
		} `json:"mutations"`
	} `json:"files"`
}

// unleash has gremlins change a package, and prints what came of it.
func (t target) unleash(ctx context.Context, o options, work string) error {
	flags, err := t.modfile(ctx, o, work)
	if err != nil {
		return err
	}
	output := filepath.Join(work, "report.json")
	_ = os.Remove(output)
	limited, cancel := context.WithTimeout(ctx, o.budget)
	defer cancel()
	cmd := exec.CommandContext(limited, o.gremlins, "unleash", "--silent", "--workers=2", "--timeout-coefficient=10", "--output="+output, "./"+t.dir)
	cmd.Dir = filepath.Join(o.root, t.module)
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" "+flags)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	said, err := cmd.CombinedOutput()
	content, missing := os.ReadFile(output)
	switch {
	case missing != nil && limited.Err() != nil && ctx.Err() == nil:
		fmt.Printf("%-45s not finished within %v: give it more with -budget\n", t.path(), o.budget)
		return nil
	case missing != nil:
		return fmt.Errorf("gremlins: %w\n%s", errors.Join(err, missing), said)
	}
	var r report
	if err := json.Unmarshal(content, &r); err != nil {
		return fmt.Errorf("read gremlins' report: %w", err)
	}
	r.print(t)
	return nil
}

// print prints how many mutations there were, and where those are that lived.
func (r report) print(t target) {
	late, where := 0, ""
	for _, file := range r.Files {
		for _, m := range file.Mutations {
			switch m.Status {
			case "TIMED OUT":
				late++
			case "LIVED":
				where += fmt.Sprintf("    lived: %s:%d %s\n", filepath.Join(t.path(), filepath.Base(file.Name)), m.Line, m.Type)
			}
		}
	}
	fmt.Printf("%-45s %6d %6d %9d %11d\n%s", t.path(), r.Killed, r.Lived, late, r.NotCovered, where)
}

// modfile returns the flag for a go.mod with absolute paths in its replacements: gremlins
// copies the module elsewhere.
func (t target) modfile(ctx context.Context, o options, work string) (flag string, err error) {
	module := filepath.Join(o.root, t.module)
	path := filepath.Join(work, filepath.Base(t.module)+".mod")
	for from, to := range map[string]string{"go.mod": path, "go.sum": path[:len(path)-len("mod")] + "sum"} {
		content, err := os.ReadFile(filepath.Join(module, from))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, content, 0o600); err != nil {
			return "", err
		}
	}
	if t.module == "libs" {
		return "-modfile=" + path, nil
	}
	const libs = "github.com/krm-function-runner/function-runner/libs"
	out, err := goCommand(ctx, module, "mod", "edit", "-replace="+libs+"="+filepath.Join(o.root, "libs"), path)
	if err != nil {
		return "", fmt.Errorf("edit go.mod: %w\n%s", err, out)
	}
	return "-modfile=" + path, nil
}
