// SPDX-License-Identifier: Apache-2.0

// Package row attacks a program while it serves well-behaved callers, and reports the result as a row of a table.
package row

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/test/attack/internal/attacks"
	"github.com/krm-function-runner/function-runner/test/attack/internal/caller"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// Config configures the attacks.
type Config struct {
	System *system.System
	// Brief is true in tests with the option -short. Attacks must then take only a few seconds.
	Brief bool
}

// times are the minimum durations of the warm-up and of the measurements before, during and after an attack.
type times struct{ warmUp, before, meanwhile, after time.Duration }

var (
	thorough = times{2 * time.Second, 5 * time.Second, 3 * time.Second, 5 * time.Second}
	brief    = times{time.Second, 2 * time.Second, 2 * time.Second, time.Second}
)

func (c Config) times() times {
	if c.Brief {
		return brief
	}
	return thorough
}

const attackLimit = 2 * time.Minute

// tries is the maximum number of runs of an attack. An attack runs again if slow answers are the only problem. In a
// single run, a busy machine may be the cause of slow answers. A real defect causes them in each run.
const tries = 3

// Run attacks a program and returns the result. If the program does not withstand the attack, row describes the
// problem, and err is nil. If slow answers are the only problem, Run repeats the attack at full length. This is because
// a brief attack may have fewer than 100 calls, and a single slow call then determines the 99th percentile.
func (c Config) Run(ctx context.Context, attack attacks.Attack, program string) (row Row, err error) {
	for range tries {
		if row, err = c.runOnce(ctx, attack, program); err != nil || !row.OnlySlow() {
			return row, err
		}
		c.Brief = false
	}
	return row, nil
}

func (c Config) runOnce(ctx context.Context, attack attacks.Attack, program string) (row Row, err error) {
	row = Row{Attack: attack.Name, Program: program, PeakLimit: attack.PeakLimit}
	if err := c.System.Start(ctx, program); err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, c.System.Stop()) }()
	var samples caller.Samples
	stop, err := c.startCallers(ctx, program, &samples)
	if err != nil {
		return row, err
	}
	defer stop()
	at := c.watchAttack(ctx, attack, &row)
	row.Peak = c.System.Peak()
	row.Ended = c.System.Ended()
	if row.Ended != "" {
		row.Log = c.System.Tail()
	}
	stop()
	row.compare(&samples, at)
	return row, ctx.Err()
}

// moments contains the start and end times of the measurements before, during and after an attack.
type moments struct{ start, attacked, over, recovered, end time.Time }

// watchAttack runs the attack, records the program's memory usage, and returns the start and end times of all
// measurements.
func (c Config) watchAttack(ctx context.Context, attack attacks.Attack, row *Row) (at moments) {
	times := c.times()
	retry.Sleep(ctx, times.warmUp)
	at.start = time.Now()
	retry.Sleep(ctx, times.before)
	row.Before = c.System.Memory()

	at.attacked = time.Now()
	row.Result = c.runAttack(ctx, attack)
	// Continue to measure after a short attack, because the program may still process the attack's requests.
	retry.Sleep(ctx, time.Until(at.attacked.Add(times.meanwhile)))
	at.over = time.Now()

	row.After = c.awaitSettled(ctx, row.Before)
	at.recovered = time.Now()
	retry.Sleep(ctx, times.after)
	at.end = time.Now()
	return at
}

// compare sets the row's latencies and failures of well-behaved callers before, during and after the attack.
func (r *Row) compare(samples *caller.Samples, at moments) {
	before, after := samples.Between(at.start, at.attacked), samples.Between(at.recovered, at.end)
	during := samples.Between(at.attacked, at.over)
	r.Undisturbed = undisturbedP99(caller.P99(before), caller.P99(after))
	r.Meanwhile = caller.P99(during)
	r.Recovered = caller.P99(after) < caller.Never
	r.Failed = caller.Failures(append(during, after...))
}

// undisturbedP99 returns the 99th percentile of latency without an attack. This is the higher of the latencies before
// and after the attack, because the machine may have become slightly slower. However, if the latency after the attack
// is much higher, the attack still affects the callers. The result is then the latency before the attack.
func undisturbedP99(before, after time.Duration) time.Duration {
	if after/slower <= max(before, leastP99) {
		return max(before, after)
	}
	return before
}

// runAttack runs the attack with a timeout. The attack's connections are closed when runAttack returns.
func (c Config) runAttack(ctx context.Context, attack attacks.Attack) error {
	ctx, cancel := context.WithTimeout(ctx, attackLimit)
	defer cancel()
	return attack.Run(ctx, &attacks.Target{System: c.System, Brief: c.Brief})
}

// awaitSettled waits until the program has freed its memory after an attack. The timeout is settle. The result is the
// remaining memory usage in bytes.
func (c Config) awaitSettled(ctx context.Context, before int64) int64 {
	end := time.Now().Add(settle)
	for time.Now().Before(end) && ctx.Err() == nil && c.System.Ended() == "" {
		if used := c.System.Memory(); used <= before+kept {
			return used
		}
		retry.Sleep(ctx, 200*time.Millisecond)
	}
	return c.System.Memory()
}

// startCallers starts the well-behaved callers in their own process, so that the attack's work does not delay them. The
// returned function stop ends the calls and waits for the last answers.
func (c Config) startCallers(ctx context.Context, program string, samples *caller.Samples) (stop func(), err error) {
	args := []string{"/proc/self/exe", caller.Role, c.System.Address, c.callersImage(program)}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the other callers: %w", err)
	}
	if err := c.System.Favour(cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		samples.Read(out)
	}()
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		_ = cmd.Wait()
	}, nil
}

// callersImage returns the image that well-behaved callers evaluate or resolve. For the pod-manager, it returns an
// empty string, because callers send only health checks to the pod-manager.
func (c Config) callersImage(program string) string {
	switch program {
	case system.PodManager:
		return ""
	case system.ImageResolver:
		return caller.Resolve + c.System.Repository()
	default:
		return system.Steady
	}
}
