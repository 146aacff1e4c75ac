// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// process is a running kubectl port-forward.
type process struct {
	// address is the address where kubectl listens, as host:port.
	address string
	stop    context.CancelFunc
	// ended is closed when the process has exited.
	ended chan struct{}
}

// killDelay is the maximum time for which child processes of a stopped kubectl may keep its output open.
const killDelay = 5 * time.Second

// start starts kubectl and returns when its port is open. kubectl runs until end is called or the gateway's pod exits.
func start(ctx context.Context, args []string) (*process, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(running, "kubectl", args...)
	cmd.WaitDelay = killDelay
	read, write := io.Pipe()
	problems := new(problems)
	cmd.Stdout, cmd.Stderr = write, problems
	if err := cmd.Start(); err != nil {
		stop()
		return nil, err
	}
	p := &process{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // kubectl's output contains the reason
		_ = write.Close()
	}()
	listens := make(chan string, 1)
	go listen(read, listens)
	select {
	case p.address = <-listens:
		if p.address != "" {
			return p, nil
		}
		p.end()
		return nil, fmt.Errorf("kubectl port-forward ended: %s", problems)
	case <-ctx.Done():
		p.end()
		return nil, fmt.Errorf("kubectl port-forward has no connection: %w: %s", context.Cause(ctx), problems)
	}
}

// forwarding matches the line that kubectl prints when its port is open.
var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) -> `)

// listen sends the address where kubectl listens, or an empty string if kubectl prints none. It then discards
// all further output, because kubectl prints a line for each connection and would otherwise block.
func listen(output *io.PipeReader, listens chan<- string) {
	address := ""
	for lines := bufio.NewScanner(output); address == "" && lines.Scan(); {
		if found := forwarding.FindStringSubmatch(lines.Text()); found != nil {
			address = found[1]
		}
	}
	listens <- address
	_, _ = io.Copy(io.Discard, output)
}

func (p *process) isRunning() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) end() {
	p.stop()
	<-p.ended
}

// problems collects the beginning of kubectl's error output, for the error of a failed connection. Callers must not
// read it before kubectl has exited.
type problems []byte

// maxProblems limits the stored part of kubectl's error output, in bytes.
const maxProblems = 4 << 10

// Write implements io.Writer.
func (p *problems) Write(b []byte) (int, error) {
	*p = append(*p, b[:min(len(b), maxProblems-len(*p))]...)
	return len(b), nil
}

// String returns the collected error output of kubectl in one line.
func (p *problems) String() string {
	return cmp.Or(strings.Join(strings.Fields(string(*p)), " "), "it says nothing")
}
