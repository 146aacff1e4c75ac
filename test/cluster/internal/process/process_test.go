// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// supervise runs the programs until seen accepts their status, and returns the directory of their
// logs.
func supervise(t *testing.T, specs []process.Spec, seen func([]process.Status) bool) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	logs := t.TempDir()
	supervisor := process.Supervisor{Logs: logs, Changed: func(status []process.Status) {
		if seen(status) {
			stop()
		}
	}}
	supervisor.Run(ctx, specs)
	return logs
}

func TestProgramsAreStartedAgain(t *testing.T) {
	specs := []process.Spec{{Name: "brief", Command: []string{"sh", "-c", "echo started; exit 3"}}}
	var last process.Status
	logs := supervise(t, specs, func(status []process.Status) bool {
		if status[0].State == process.Failed {
			last = status[0]
		}
		return status[0].Restarts == 2
	})
	if last.LastExit != "exit status 3" {
		t.Errorf("the last exit was %q", last.LastExit)
	}
	output, err := os.ReadFile(filepath.Join(logs, "brief.log"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(output), "started"); got != 2 {
		t.Errorf("the log has %d starts, want both", got)
	}
}

func TestHeldProgramIsNotStarted(t *testing.T) {
	holds := t.TempDir()
	hold := filepath.Join(holds, "held")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var states []process.State
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	supervisor := process.Supervisor{Logs: t.TempDir(), Holds: holds, Changed: func(status []process.Status) {
		states = append(states, status[0].State)
		if status[0].State != process.Held {
			if status[0].State == process.Running {
				stop()
			}
			return
		}
		if err := os.Remove(hold); err != nil {
			t.Error(err)
			stop()
		}
	}}
	supervisor.Run(ctx, []process.Spec{{Name: "held", Command: []string{"sleep", "60"}}})
	if want := []process.State{process.Waiting, process.Held, process.Running}; !slices.Equal(states, want) {
		t.Errorf("the program was %v, want %v", states, want)
	}
}

func TestOneProgramDoesNotDisturbAnother(t *testing.T) {
	specs := []process.Spec{
		{Name: "steady", Command: []string{"sleep", "60"}},
		{Name: "missing", Command: []string{"/no/such/program"}},
	}
	supervise(t, specs, func(status []process.Status) bool {
		if status[0].Restarts > 0 {
			t.Error("the steady program was started again")
			return true
		}
		return status[0].State == process.Running && status[1].Restarts > 0
	})
}

func TestProgramWaitsForWhatItNeeds(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	specs := []process.Spec{
		{Name: "first", Command: []string{"sleep", "60"}},
		{Name: "second", Command: []string{"sleep", "60"}, After: "unix:" + socket},
	}
	var listener net.Listener
	supervise(t, specs, func(status []process.Status) bool {
		if listener == nil && status[1].State == process.Running {
			t.Error("the second program did not wait")
			return true
		}
		if listener == nil && status[0].State == process.Running {
			var err error
			if listener, err = net.Listen("unix", socket); err != nil {
				t.Error(err)
				return true
			}
		}
		return status[1].State == process.Running
	})
	if listener != nil {
		listener.Close()
	}
}
