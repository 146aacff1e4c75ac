package fnproc

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// minBuffer is the first size of a buffer about which nothing is known, in bytes.
const minBuffer = 4 << 10

// evaluate feeds stdin to the process, gathers what it writes, waits for its end and
// frees everything. It can be called once.
func (p *process) evaluate(ctx context.Context, stdin []byte) (Outcome, error) {
	defer p.closePipes()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopKilling := p.killWhenDone(ctx)

	// A function mostly writes about as much as it reads.
	output := newCollector("output", p.stdout, p.cmd.MaxOutput, len(stdin)+minBuffer)
	log := newCollector("log", p.stderr, p.cmd.MaxLog, minBuffer)
	enlarge(len(stdin), p.stdin, p.stdout)
	var pipes sync.WaitGroup
	pipes.Go(func() { p.feed(stdin) })
	for _, c := range []*collector{output, log} {
		pipes.Go(func() {
			if err := c.gather(); err != nil {
				cancel(givenUp{err})
			}
		})
	}

	waitErr := p.awaitExit()
	p.kill()
	p.interrupt()
	pipes.Wait()
	stopKilling()
	state, err := p.reap()

	out := outcome(state)
	out.Output, out.Log = output.buf, log.buf
	switch {
	case ctx.Err() != nil:
		return out, stopped(ctx)
	case waitErr != nil:
		err = waitErr
	}
	if err != nil {
		return out, fmt.Errorf("wait for function %s: %w", p.cmd.Path, err)
	}
	return out, nil
}

// killWhenDone kills the process and its group when ctx ends. The function that it returns ends the
// watch; after it no signal is under way.
func (p *process) killWhenDone(ctx context.Context) (stop func()) {
	killed := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(killed)
		p.kill()
	})
	return func() {
		if !unwatch() {
			<-killed
		}
	}
}

// feed writes stdin to the process and closes its end. There is no error to report:
// a function may end without reading its input.
func (p *process) feed(stdin []byte) {
	_, _ = p.stdin.Write(stdin)
	_ = p.stdin.Close()
}

// outcome returns how a process ended; a nil state is one that nobody knows.
func outcome(state *os.ProcessState) Outcome {
	if state == nil {
		return Outcome{ExitCode: -1}
	}
	out := Outcome{ExitCode: state.ExitCode(), Status: state.String()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		out.Signal = ws.Signal()
	}
	return out
}
