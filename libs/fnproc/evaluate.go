// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

// minBuffer is the first size of a buffer about which nothing is known, in bytes.
const minBuffer = 4 << 10

// evaluate feeds stdin to the process, waits for its end and frees everything. It can
// be called once.
func (p *process) evaluate(ctx context.Context, stdin []byte) (Outcome, error) {
	p.hurryTempDir()
	p.memory.add(p)
	defer p.memory.remove(p)
	stopKilling := context.AfterFunc(ctx, func() { p.kill(stopped(ctx)) })
	p.output.expect(len(stdin) + minBuffer)
	enlarge(len(stdin), p.stdin, p.stdout)
	p.feed(stdin)
	<-p.exited
	switch {
	case !stopKilling():
		p.kill(stopped(ctx)) // which may not have happened yet
	case p.killedFor() == nil && !p.killedForMemory():
		p.awaitOutput(ctx)
	}
	state, err := p.finish()

	out := outcome(state)
	p.cmd.Launch.translate(&out)
	out.Output, out.Log, out.OutOfMemory = p.output.buf, p.log.buf, p.killedForMemory()
	if reason := p.killedFor(); reason != nil {
		return out, reason
	}
	if err != nil {
		return out, fmt.Errorf("wait for function %s: %w", p.cmd.Path, err)
	}
	return out, nil
}

// feed writes stdin to the process and closes its end: at once what fits into the pipe,
// the rest as the function reads. There is no error to report: a function may end without
// reading its input.
func (p *process) feed(stdin []byte) {
	p.fed = writeAvailable(p.stdin, stdin)
	if p.fed == len(stdin) {
		_ = p.stdin.Close()
		return
	}
	p.background.Go(func() {
		n, _ := p.stdin.Write(stdin[p.fed:])
		p.fed += n
		_ = p.stdin.Close()
	})
}

// outcome returns how a process ended; a nil state is unknown.
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
