// SPDX-License-Identifier: Apache-2.0

// Package system runs the attacked programs, and the servers on which they depend, without Kubernetes.
package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/test/internal/sandbox"
)

// Limit is each program's memory limit in bytes.
const Limit = 1 << 30

// Budget is a gateway's memory budget in bytes: the default of a container with the memory limit.
const Budget = Limit / 8

// startTimeout is the time limit for a program's start, even on a busy machine.
const startTimeout = 30 * time.Second

// Program is a running program that is attacked, or a server that this program needs.
type Program struct {
	Name    string
	Address string // address of its services
	Metrics string // address of its metrics
	Pid     int
	Log     string // path of its log

	group *sandbox.Group
	dir   string // directory of the files of all programs
	cmd   *exec.Cmd
	ended chan struct{}
	peak  atomic.Int64
}

// startPlan starts a program with a plan's arguments and environment, and waits until it serves requests. If memory
// limits are enabled, the program gets its own control group.
func (s *System) startPlan(ctx context.Context, name string, p plan) (*Program, error) {
	s.started++
	program := &Program{Name: name, Address: p.address, Metrics: p.metrics, dir: s.dir, ended: make(chan struct{})}
	program.Log = filepath.Join(s.dir, fmt.Sprintf("%s-%d.log", name, s.started))
	if s.limited {
		group, err := sandbox.NewGroup(s.owner, fmt.Sprintf("%s-%d", name, s.started), Limit)
		if err != nil {
			return nil, err
		}
		program.group = group
	}
	if err := program.run(ctx, filepath.Join(s.dir, "bin", name), p); err != nil {
		return nil, errors.Join(err, program.Stop())
	}
	if err := program.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, program.Stop())
	}
	return program, nil
}

func (p *Program) run(ctx context.Context, path string, pl plan) error {
	log, err := os.Create(p.Log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	p.cmd = p.group.Command(ctx, path, pl.args...)
	p.cmd.Env = pl.env
	p.cmd.Stdout = log
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		close(p.ended)
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.Pid = p.cmd.Process.Pid
	go func() {
		_ = p.cmd.Wait() // cmd.ProcessState contains the exit status
		close(p.ended)
	}()
	go p.watchExit()
	return nil
}

// awaitReady waits until the program answers a health check. It also accepts the answer "not ready". This is because
// programs without Kubernetes serve requests, but never become ready.
func (p *Program) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+p.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for {
		_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-p.ended:
			return fmt.Errorf("%s did not start: %s", p.Name, p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve on %s (%w): %s", p.Name, p.Address, err, p.Tail())
		}
	}
}

// Tail returns the end of the program's log, for error messages.
func (p *Program) Tail() string {
	content, _ := os.ReadFile(p.Log)
	return strings.TrimSpace(string(content[max(0, len(content)-300):]))
}

// Ended describes the program's exit status. It is empty while the program runs.
func (p *Program) Ended() string {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// watchExit repeatedly records the program's peak memory usage until the program exits.
func (p *Program) watchExit() {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-ticker.C:
			if used := p.Memory(); used > p.peak.Load() {
				p.peak.Store(used)
			}
		}
	}
}

// Peak returns the peak memory usage so far in bytes.
func (p *Program) Peak() int64 { return p.peak.Load() }

// Memory returns the memory usage of the program and its functions in bytes. Without a control group, it is the sum
// of their resident sets, in which shared pages count several times.
func (p *Program) Memory() int64 {
	if p.group != nil {
		return p.group.Used()
	}
	total := residentMemory(p.Pid)
	for _, process := range p.Processes() {
		total += residentMemory(process.Pid)
	}
	return total
}

// Stop kills the program and all its functions' processes.
func (p *Program) Stop() error {
	if p.cmd != nil && p.cmd.Process != nil {
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	for _, process := range p.Processes() {
		_ = unix.Kill(process.Pid, unix.SIGKILL)
	}
	if p.group == nil {
		return nil
	}
	return p.group.Remove()
}

// firstPort is the lowest port at which programs listen. All these ports are lower than the ephemeral ports, which the
// kernel assigns to outgoing connections. No outgoing connection can therefore occupy a program's port.
const firstPort = 20000

// freeAddress returns an unused loopback address. Each call returns a different port.
func (s *System) freeAddress() (string, error) {
	for {
		s.ports++
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+s.ports%10000))
		listener, err := net.Listen("tcp", address)
		switch {
		case err == nil:
			return address, listener.Close()
		case !errors.Is(err, unix.EADDRINUSE):
			return "", err
		}
	}
}
