// SPDX-License-Identifier: Apache-2.0

// Package function runs KRM functions as local processes, decides whether they succeeded, and writes the error
// texts that callers see.
package function

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/cgroup"
	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// ServiceConfig configures a Service.
type ServiceConfig struct {
	// Program is the program's name in metrics and traces.
	Program string
	Settings
	Confinement
	// Shared contains directories, such as /tmp, that the function of a [Pod] may write to while no other evaluation
	// runs. The pod empties the directories before and after such an evaluation.
	Shared []string
	// Hidden contains the files and directories that functions must not read.
	Hidden []string
	// OwnFiles limits functions to harmless devices, their own program and the readable files of their command.
	OwnFiles bool
	// Sandboxed is true if all commands are launchers such as bubblewrap. The service then need not confine functions.
	Sandboxed bool
	// MaxMessageBytes is the maximum size of a response.
	MaxMessageBytes int
	// AnyOutput is true if functions may write any text instead of a ResourceList, such as their help.
	AnyOutput bool
	// Env is the environment of all functions.
	Env []string
	// Keep returns the number of processes to start in advance for the function with a given name (see
	// [fnproc.Command.Function]). If Keep is nil, the number is Prefork. PreforkTotal is the maximum number of such
	// processes for all functions together.
	Keep         func(function string) int
	PreforkTotal int
	// Wording returns the error text of a failure. If FlattenLog is true, the service joins the lines of each log into a
	// single line, in results and in failures.
	Wording    Wording
	FlattenLog bool
	Telemetry  *telemetry.Telemetry

	inPod bool // set by [NewPod]
}

// PreforkUnused is the time after which processes started in advance are killed if their function is not used.
const PreforkUnused = 10 * time.Minute

// Service runs and confines functions. It starts processes in advance so that evaluations begin faster.
type Service struct {
	cfg      ServiceConfig
	reaper   *fnproc.Reaper
	runner   *fnproc.Runner
	confiner *confine.Confiner
	env      []string
	// kills detects whether a function was killed because memory ran out.
	kills    *cgroup.Kills
	tracer   trace.Tracer
	preforks metric.Int64Counter
}

// NewService returns a service. Callers must call either [Service.Maintain] or [Service.Close] to free its resources.
func NewService(cfg ServiceConfig) (*Service, error) {
	if cfg.Keep == nil {
		cfg.Keep = func(string) int { return cfg.Prefork }
	}
	reaper, err := fnproc.NewReaper(cfg.Telemetry.Log)
	if err != nil {
		return nil, err
	}
	s := &Service{
		cfg: cfg, reaper: reaper, env: WithGo(cfg.Env, cfg.goMemory()), kills: cgroup.NewKills(cgroup.Container),
		tracer: cfg.Telemetry.Tracers.Tracer(cfg.Program),
	}
	s.preforks = telemetry.Must(cfg.Telemetry.Meters.Meter(cfg.Program).Int64Counter("fn.prefork",
		metric.WithDescription(
			"Evaluations of functions with a prefork pool: a hit used a spare process, a miss found none. "+
				"Labels: function, outcome.")))
	if s.confiner, err = cfg.newConfiner(); err != nil {
		return nil, err
	}
	s.runner = fnproc.NewRunner(fnproc.Config{
		Reaper: reaper, Confiner: s.confiner, Watch: fnproc.NewWatch(memoryUsage, processUsage),
		Keep: cfg.Keep, Total: cfg.PreforkTotal, Unused: PreforkUnused, Log: cfg.Telemetry.Log,
	})
	return s, nil
}

// newConfiner returns a confiner, or nil if functions run in sandboxes, because the sandboxes confine them.
func (c ServiceConfig) newConfiner() (*confine.Confiner, error) {
	if c.Sandboxed {
		return nil, nil //nolint:nilnil // a nil Confiner is one that does nothing
	}
	return confine.New(confine.Config{
		Level: c.Confine, MaxTempBytes: int64(c.MaxTempBytes), Log: c.Telemetry.Log,
		ReadAll: c.inPod, OwnFiles: c.OwnFiles, Hidden: c.Hidden, Shared: c.Shared,
	})
}

// goMemory returns the number of bytes that functions may use. The service computes Go's memory limit from this number.
// It is zero if the memory is unknown, or if a sandbox launcher sets the limit.
func (c ServiceConfig) goMemory() int64 {
	if c.Sandboxed {
		return 0 // the launcher sets the limit
	}
	limit, _ := cgroup.MemoryLimit(cgroup.Container)
	return limit
}

// memoryUsage returns the memory usage of the container, or of the machine if the container has no limit. A part of the
// limit never counts as free, because the server and functions that are being killed need this memory.
func memoryUsage() (usage fnproc.Usage, ok bool) {
	if limit, limited := cgroup.MemoryLimit(cgroup.Container); limited {
		used, known := cgroup.MemoryUse(cgroup.Container)
		return fnproc.Usage{Limit: limit, Free: limit - memoryReserve(limit) - used}, known
	}
	total, available, known := cgroup.MachineMemory("/proc/meminfo")
	return fnproc.Usage{Limit: total, Free: available - memoryReserve(total)}, known
}

// memoryReserve returns the part of a memory limit that never counts as free: a sixteenth, but in small containers an
// eighth or 16 MiB, whichever is less. Small containers need a larger part, because their server's program does not get
// smaller. Near the limit, the kernel first drops the pages of that program, and the server must read them again before
// it can kill a function. Meanwhile the kernel may kill the function, and then the server too.
func memoryReserve(limit int64) int64 {
	return max(limit/16, min(limit/8, 16<<20))
}

// processUsage returns the number of processes and threads in the container. A quarter of the limit never counts as
// free. The server needs it, and functions may start further processes before they are killed.
func processUsage() (usage fnproc.Usage, ok bool) {
	limit, used, ok := cgroup.Processes(cgroup.Container)
	return fnproc.Usage{Limit: limit, Free: limit - limit/4 - used}, ok
}

// Evaluation is a single run of a function.
type Evaluation struct {
	// Image is the function's image as its caller wrote it. It appears in errors.
	Image string
	// Command is the program of the function. The service adds the environment and the output limits.
	Command      fnproc.Command
	ResourceList []byte
	// Limit limits the duration of the run.
	Limit TimeLimit
}

// Run runs a function immediately. Callers must validate the input with [CheckInput] and limit the number of
// concurrent runs. If the function fails, the error's chain contains a [*Failure]. If ctx was canceled, the error has
// the class of ctx's error.
func (s *Service) Run(ctx context.Context, e Evaluation) (Result, error) {
	ctx, cancel := e.Limit.Context(ctx)
	defer cancel()
	path := attribute.String("process.executable.path", e.Command.Path)
	ctx, span := s.tracer.Start(ctx, "fn.exec", trace.WithAttributes(path))
	defer span.End()
	start := time.Now()
	out, err := s.runner.Run(ctx, s.command(e.Command), e.ResourceList)
	span.SetAttributes(
		attribute.Int("process.exit.code", out.ExitCode), attribute.String("fn.prefork", out.Prefork.String()))
	s.countPrefork(ctx, e.Command, out.Prefork)
	result, err := s.conclude(ctx, e.Image, out, err, time.Since(start))
	if err != nil {
		span.SetStatus(codes.Error, fault.Of(err).String())
	}
	return result, err
}

// framing is the maximum number of bytes of a response message in addition to the function's output and log.
const framing = 64

// command returns cmd with the output limits of the service. If cmd has no environment, command adds the service's
// environment.
func (s *Service) command(cmd fnproc.Command) fnproc.Command {
	if cmd.Env == nil {
		cmd.Env = s.env
	}
	cmd.MaxOutput, cmd.MaxLog = int64(s.cfg.MaxMessageBytes-framing), MaxLogBytes
	return cmd
}

// countPrefork counts evaluations in a metric. It counts evaluations that used a process started in advance separately.
// It ignores functions for which no processes are started in advance.
func (s *Service) countPrefork(ctx context.Context, cmd fnproc.Command, prefork fnproc.Prefork) {
	if prefork == fnproc.PreforkOff {
		return
	}
	name, _, _ := strings.Cut(filepath.Base(cmd.Function()), "@") // without an image's digest
	s.preforks.Add(ctx, 1, metric.WithAttributes(
		attribute.String("function", name), attribute.String("outcome", prefork.String())))
}

// Prepare starts processes of cmd in advance, before its first evaluation.
func (s *Service) Prepare(cmd fnproc.Command) { s.runner.Prepare(s.command(cmd)) }

// Forget kills the processes that were started in advance for all functions whose names (see [fnproc.Command.Function])
// satisfy the given predicate. It returns after the processes have exited.
func (s *Service) Forget(which func(function string) bool) { s.runner.Forget(which) }

// NotStarted returns the error that [Service.Run] would return for a function that cannot be started because of err.
// It is for callers that detect this before they call Run.
func (s *Service) NotStarted(image string, err *fnproc.StartError) error {
	return s.platformFailure(Failure{Image: image}, err)
}

// Changed makes the service call ServiceConfig.Keep again. Callers must call it when the result of Keep for a function
// changes.
func (s *Service) Changed() { s.runner.Changed() }

// Maintain starts processes in advance and kills processes that functions left behind, until ctx is canceled. It then
// closes the service.
func (s *Service) Maintain(ctx context.Context) error {
	s.runner.Maintain(ctx)
	return nil
}

// Close frees the resources of a service for which Maintain was not called.
func (s *Service) Close() { s.confiner.Close() }

// WithGo returns a function's environment env with additional settings of Go's runtime. It keeps settings that env
// already contains. Functions in other languages ignore the settings. Memory is the number of bytes that the function
// may use, or zero if unknown.
//
// Most functions are sequential Go programs that run for milliseconds, and use further processors only for garbage
// collection, at a higher cost. With GOMAXPROCS=1, set-namespace needs a fifteenth less processor time for a single
// resource, and two fifths less for thousands of resources.
//
// GOGC=200 causes fewer collections, which saves a seventh of the remaining processor time but needs more memory.
// Therefore GOMEMLIMIT makes Go collect as often as necessary once a function uses half of the memory. A function with
// more live data than that would run out of memory with Go's defaults too.
func WithGo(env []string, memory int64) []string {
	env = withVariable(env, "GOMAXPROCS", "1")
	env = withVariable(env, "GOGC", "200")
	if memory > 0 {
		env = withVariable(env, "GOMEMLIMIT", strconv.FormatInt(memory/2, 10))
	}
	return env
}

// withVariable returns env with the variable name set to value, unless env already contains the variable.
func withVariable(env []string, name, value string) []string {
	if slices.ContainsFunc(env, func(variable string) bool { return strings.HasPrefix(variable, name+"=") }) {
		return env
	}
	return append(slices.Clip(env), name+"="+value)
}
