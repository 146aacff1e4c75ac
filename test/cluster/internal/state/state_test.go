// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

func TestLoadSaysThatThereIsNoCluster(t *testing.T) {
	if _, err := state.Load(layout.Layout{Name: "no-such-cluster"}); !errors.Is(err, state.ErrNone) {
		t.Errorf("error %v, want ErrNone", err)
	}
}

func TestWriteJSONIsPrivateAndLeavesNoOtherFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for range 2 {
		if err := state.WriteJSON(path, state.State{Ready: true}); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("the directory has %v, want one file", entries)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file, which has passwords, has mode %v", info.Mode())
	}
}

func TestKillEndsTheProcess(t *testing.T) {
	command := start(t)
	found, err := state.Find(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !found.Alive() {
		t.Fatal("a running process is not alive")
	}
	if err := found.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found.Alive() {
		t.Error("a killed process that was not reaped is alive")
	}
}

func TestKillSparesAnotherProcessWithTheSameNumber(t *testing.T) {
	command := start(t)
	found, err := state.Find(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for reason, former := range map[string]state.Process{
		"of another start":              {PID: found.PID, Started: "1", Boot: found.Boot},
		"before the machine's restart":  {PID: found.PID, Started: found.Started, Boot: "another"},
		"in the file of an old version": {PID: found.PID, Started: found.Started},
		"in a file that is damaged":     {},
	} {
		if err := former.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !found.Alive() {
			t.Fatalf("the process was killed in place of one %s", reason)
		}
	}
}

func start(t *testing.T) *exec.Cmd {
	t.Helper()
	command := exec.Command("sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // It may have ended.
		_ = command.Wait()         // Its status is that of a killed process.
	})
	return command
}
