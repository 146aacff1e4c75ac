// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/libs/admission"
	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// ServiceConfig is what a Service works with.
type ServiceConfig struct {
	// Program is the program's name in metrics and traces.
	Program string
	Settings
	Confinement
	// Queue is how many evaluations may wait for a slot. An eighth of the slots is added for
	// functions that run nothing, and an eighth for callers that run nothing.
	Queue int
	// MaxMessageBytes bounds each response.
	MaxMessageBytes int
	// Env is the environment of all functions.
	Env []string
	// Keep returns how many spare processes a function has, which is named by its path, or by its
	// launcher; nil means Prefork. PreforkTotal bounds the spare processes of all functions.
	Keep         func(function string) int
	PreforkTotal int
	// ReadAll lets functions read every file but the Hidden ones.
	ReadAll bool
	Hidden  []string
	// Shared are directories that a function may write to while it runs alone, for a container that has one function. They
	// are emptied before and after.
	Shared []string
	// Sandboxed means that all commands are launchers, which confine functions themselves.
	Sandboxed bool
	// Wording is how failures are put into words, and FlattenLog puts each log on one line.
	Wording    Wording
	FlattenLog bool
	// Took, if not nil, records how long the phases queue and run of an evaluation took.
	Took      func(ctx context.Context, phase string, took time.Duration)
	Telemetry *telemetry.Telemetry
}

// Service runs functions for callers: at most so many at a time, confined, and in spare
// processes where there are some.
type Service struct {
	gate     *admission.Gate
	runner   Runner
	confiner *confine.Confiner
	shared   *sharedDirs // nil without
	env      []string
	took     func(ctx context.Context, phase string, took time.Duration)
}

// NewService returns a service. Either [Service.Maintain] or [Service.Close] frees what it has.
func NewService(cfg ServiceConfig) (*Service, error) {
	log := cfg.Telemetry.Log
	reaper, err := fnproc.NewReaper(log)
	if err != nil {
		return nil, err
	}
	preforks, err := NewPreforks(cfg.Telemetry.Meters.Meter(cfg.Program))
	if err != nil {
		return nil, err
	}
	confiner, err := cfg.confiner()
	if err != nil {
		return nil, err
	}
	var shared *sharedDirs
	pool := cfg.newPool(func() bool { return shared != nil && shared.needed.Load() })
	if len(cfg.Shared) > 0 {
		shared = newSharedDirs(cfg.Shared, confiner.EmptyShared, pool.Changed)
	}
	s := &Service{
		gate: admission.New(cfg.slots()), confiner: confiner, shared: shared,
		env: WithGo(cfg.Env, cfg.goMemory()), took: cfg.Took,
	}
	s.runner = Runner{
		Processes: fnproc.Runner{
			Reaper: reaper, Confiner: confiner, Prefork: pool, Memory: fnproc.NewMemoryWatch(memory, pool),
		},
		Limits:     Limits{MessageBytes: cfg.MaxMessageBytes, LogBytes: MaxLogBytes},
		Wording:    cfg.Wording,
		FlattenLog: cfg.FlattenLog,
		Memory:     cgroup.NewKills(cgroup.Container),
		Tracer:     cfg.Telemetry.Tracers.Tracer(cfg.Program),
		Preforks:   preforks,
	}
	if s.took == nil {
		s.took = func(context.Context, string, time.Duration) {}
	}
	return s, nil
}

// confiner returns what confines functions, nil where their launchers do.
func (c ServiceConfig) confiner() (*confine.Confiner, error) {
	if c.Sandboxed {
		return nil, nil //nolint:nilnil // a nil Confiner is one that does nothing
	}
	return c.Confiner(c.Telemetry.Log, confine.Config{ReadAll: c.ReadAll, Hidden: c.Hidden, Shared: c.Shared})
}

// goMemory returns what a function may use, in bytes; zero if that is not known.
func (c ServiceConfig) goMemory() int64 {
	if c.Sandboxed {
		return 0 // its launcher knows
	}
	limit, _ := cgroup.MemoryLimit(cgroup.Container)
	return limit
}

// slots returns the bounds of how many functions run and wait.
func (c ServiceConfig) slots() admission.Limits {
	concurrent := c.concurrency()
	return admission.Limits{Concurrent: concurrent, Reserve: (concurrent + 7) / 8, Queue: c.Queue}
}

// memory returns what functions may use: of the container, or of the machine where that has no limit. A sixteenth is
// kept: what they use before they are killed, and what the server needs meanwhile.
func memory() (memory fnproc.Memory, ok bool) {
	if limit, limited := cgroup.MemoryLimit(cgroup.Container); limited {
		used, known := cgroup.MemoryUse(cgroup.Container)
		return fnproc.Memory{Limit: limit, Free: limit - limit/16 - used}, known
	}
	total, available, known := cgroup.MachineMemory("/proc/meminfo")
	return fnproc.Memory{Limit: total, Free: available - total/16}, known
}

// spacious reports whether half of the container's memory is free, or has no limit.
func spacious() bool {
	_, limited := cgroup.MemoryLimit(cgroup.Container)
	memory, known := memory()
	return !limited || !known || memory.Free > memory.Limit/2
}

// newPool returns the pool of spare processes. There are none while functions run alone.
func (c ServiceConfig) newPool(alone func() bool) *fnproc.PreforkPool {
	keep := c.Keep
	if keep == nil {
		keep = func(string) int { return c.Prefork }
	}
	return fnproc.NewPreforkPool(fnproc.PreforkConfig{
		Keep: func(function string) int {
			if alone() {
				return 0
			}
			return keep(function)
		},
		Spacious: spacious, Total: c.PreforkTotal, Unused: PreforkUnused, Log: c.Telemetry.Log,
	})
}

// Evaluation is one run of a function.
type Evaluation struct {
	// Image is the function's image as its caller wrote it: errors name it.
	Image string
	// Command runs the function. The service adds the environment and the limits.
	Command      fnproc.Command
	ResourceList []byte
	// Caller is the client that asks; empty if it is not known.
	Caller string
	// Limit bounds the time in the queue and in the function. RunLimit, if not nil, returns
	// another limit for the function when it begins.
	Limit    TimeLimit
	RunLimit func() TimeLimit
}

// Evaluate runs a function when it has a slot. The input is one that [CheckInput] accepts. The
// errors are those of [Runner.Run], and for an evaluation that gets no slot, one of class
// fault.Exhausted with a retry hint.
func (s *Service) Evaluate(ctx context.Context, e Evaluation) (Result, error) {
	release, err := s.admit(ctx, e)
	if err != nil {
		return Result{}, err
	}
	defer release()
	limit := e.Limit
	if e.RunLimit != nil {
		limit = e.RunLimit()
	}
	ctx, cancel := limit.Context(ctx)
	defer cancel()
	start := time.Now()
	result, err := s.shared.run(ctx, e.Image, s.command(e.Command), func(cmd fnproc.Command) (Result, error) {
		return s.runner.Run(ctx, e.Image, cmd, e.ResourceList)
	})
	s.took(ctx, "run", time.Since(start))
	return result, err
}

// admit waits for a slot, at most until the limit has passed.
func (s *Service) admit(ctx context.Context, e Evaluation) (release func(), err error) {
	limited, cancel := e.Limit.Context(ctx)
	defer cancel()
	start := time.Now()
	release, err = s.gate.Acquire(limited, admission.Claim{Function: e.Command.Function(), Caller: e.Caller})
	waited := time.Since(start)
	s.took(ctx, "queue", waited)
	if err != nil {
		return nil, notAdmitted(e.Image, waited, err)
	}
	return release, nil
}

// command returns cmd with the environment of functions.
func (s *Service) command(cmd fnproc.Command) fnproc.Command {
	cmd.Env = s.env
	return cmd
}

// Prepare starts the spare processes of cmd before its first evaluation.
func (s *Service) Prepare(cmd fnproc.Command) { s.runner.Prepare(s.command(cmd)) }

// Forget ends the spare processes of functions, which [fnproc.Command.Function] names. They have ended when it returns.
func (s *Service) Forget(which func(function string) bool) { s.runner.Processes.Forget(which) }

// NotStarted returns the error of a function of image that cannot be started because of err, as
// [Service.Evaluate] would find it out.
func (s *Service) NotStarted(image string, err *fnproc.StartError) error {
	return s.runner.platformFailure(Failure{Image: image}, err)
}

// Changed makes the service notice that Keep returns something else than before.
func (s *Service) Changed() { s.runner.Processes.Prefork.Changed() }

// Maintain keeps spare processes and ends orphans until ctx ends, and closes the service.
func (s *Service) Maintain(ctx context.Context) error {
	s.runner.Processes.Maintain(ctx)
	return nil
}

// Close frees what a service has that is not maintained.
func (s *Service) Close() { s.confiner.Close() }

// Running returns how many functions run now.
func (s *Service) Running() int { return s.gate.Running() }

// Waiting returns how many evaluations wait for a slot now.
func (s *Service) Waiting() int { return s.gate.Waiting() }
