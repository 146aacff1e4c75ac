// SPDX-License-Identifier: Apache-2.0

// Package process supervises a cluster's programs. It starts each program once its dependency accepts connections,
// restarts programs that exit, and writes their output to log files.
package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// Spec describes a program that runs as long as the cluster.
type Spec struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	// After is the address of a server on which the program depends, "tcp:HOST:PORT" or "unix:PATH". The program starts
	// once this server accepts connections.
	After string `json:"after,omitempty"`
}

// Supervisor runs a cluster's programs, restarts them after an exit, and reports their status.
type Supervisor struct {
	// Logs is the directory of the programs' log files, NAME.log.
	Logs string
	// Holds is a directory in which a file prevents the start of the program with the same name. It is optional.
	Holds string
	// Changed receives the status of all programs after each change. It is optional.
	Changed func([]Status)

	mu     sync.Mutex
	status []Status
}

// Run runs all programs until ctx ends, and returns after they have exited.
func (s *Supervisor) Run(ctx context.Context, specs []Spec) {
	s.status = make([]Status, len(specs))
	var running sync.WaitGroup
	for i, spec := range specs {
		s.updateStatus(i, func(status *Status) { *status = Status{Name: spec.Name, State: Waiting} })
		running.Go(func() { s.keepRunning(ctx, i, spec) })
	}
	running.Wait()
}

// keepRunning runs a program until ctx ends. After each exit, it restarts the program with a backoff.
func (s *Supervisor) keepRunning(ctx context.Context, i int, spec Spec) {
	if !acceptsConnections(ctx, spec.After) {
		return
	}
	wait := newBackoff()
	for s.awaitRelease(ctx, i, spec.Name) {
		start := time.Now()
		err := s.runOnce(ctx, i, spec)
		if ctx.Err() != nil {
			return // stopped on purpose
		}
		s.updateStatus(i, func(status *Status) {
			*status = Status{Name: spec.Name, State: Failed, Restarts: status.Restarts + 1, LastExit: fmt.Sprint(err)}
		})
		retry.Sleep(ctx, wait.next(time.Since(start)))
	}
}

// awaitRelease waits until the directory s.Holds contains no file with the program's name. Tests create such files to
// prevent the program's start. awaitRelease returns false if ctx ends.
func (s *Supervisor) awaitRelease(ctx context.Context, i int, name string) bool {
	for reported := false; ctx.Err() == nil && s.Holds != ""; retry.Sleep(ctx, pollInterval) {
		if _, err := os.Stat(filepath.Join(s.Holds, name)); err != nil {
			break
		}
		if !reported {
			s.updateStatus(i, func(status *Status) {
				status.State = Held
				status.PID = 0
			})
			reported = true
		}
	}
	return ctx.Err() == nil
}

func (s *Supervisor) runOnce(ctx context.Context, i int, spec Spec) error {
	log, err := os.OpenFile(filepath.Join(s.Logs, spec.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep the output of %s: %w", spec.Name, err)
	}
	defer log.Close()
	command := exec.CommandContext(ctx, spec.Command[0], spec.Command[1:]...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	s.updateStatus(i, func(status *Status) {
		status.State = Running
		status.PID = command.Process.Pid
	})
	return command.Wait()
}

// pollInterval is the interval between checks of whether a program can start.
const pollInterval = 50 * time.Millisecond

// acceptsConnections waits until a server accepts connections at address. It returns false if ctx has ended.
func acceptsConnections(ctx context.Context, address string) bool {
	network, host, ok := strings.Cut(address, ":")
	for ok && ctx.Err() == nil {
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, host)
		if err == nil {
			_ = connection.Close() // only a check
			break
		}
		retry.Sleep(ctx, pollInterval)
	}
	return ctx.Err() == nil
}
