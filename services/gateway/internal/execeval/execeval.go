// SPDX-License-Identifier: Apache-2.0

// Package execeval is the exec evaluator: it runs functions as local binaries. A configuration file or a
// FunctionConfig object maps images to binaries. Images are compared by canonical name, with the registry, so that
// an image with the same path in another registry does not match.
package execeval

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/filewatch"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// environment contains the environment variables of all functions, in addition to the settings of Go's runtime, such as
// GOMAXPROCS.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}

// Config configures an Evaluator.
type Config struct {
	// File is the path of the configuration file. The evaluator reads the file again whenever it changes.
	File string
	// Functions is the directory with the binaries of all functions.
	Functions string
	// DefaultPrefix is added before image names without a slash, so that users can write short names.
	DefaultPrefix string
	// Network matches the images whose functions may use the network.
	Network imagename.Patterns
	// Queue is the maximum number of evaluations that wait for a process.
	Queue int
	// Service configures the execution of functions. Callers must leave Env, Keep and Wording empty: New sets them.
	Service function.ServiceConfig
}

// Evaluator is the exec evaluator.
type Evaluator struct {
	cfg     Config
	log     *slog.Logger
	content []byte                // content of the configuration file at the start
	table   atomic.Pointer[table] // configuration file, merged with the FunctionConfigs
	local   *evaluation.Local

	mu      sync.Mutex
	file    *table            // configuration file alone
	configs []binaries.Binary // binaries that FunctionConfig objects define
	// problems contains the problem of each unusable FunctionConfig. It is compared with later problems, so that each
	// problem is logged only once.
	problems binaries.Problems
}

// New returns an evaluator. It returns an error if the configuration file is missing or invalid. If a later change
// makes the file invalid, [Evaluator.Watch] logs a warning and continues to use the previous content.
func New(cfg Config) (*Evaluator, error) {
	content, err := os.ReadFile(cfg.File)
	if err != nil {
		return nil, fmt.Errorf("read the exec evaluator's configuration: %w: give the file, or disable the exec runtime", err)
	}
	// Make the paths of binaries absolute, because functions run in another working directory than this program.
	if cfg.Functions, err = filepath.Abs(cfg.Functions); err != nil {
		return nil, fmt.Errorf("find the directory of functions: %w", err)
	}
	e := &Evaluator{cfg: cfg, log: cfg.Service.Telemetry.Log, content: content}
	table, err := e.parseContent(content)
	if err != nil {
		return nil, err
	}
	e.applyFile(table)
	cfg.Service.Env = environment
	cfg.Service.Keep = e.spareCount
	cfg.Service.Wording = function.ExecWording
	if e.local, err = evaluation.NewLocal(cfg.Service, cfg.Queue); err != nil {
		return nil, err
	}
	observeGate(cfg.Service.Telemetry.Meters, e.local.Gate)
	return e, nil
}

// Name implements evaluation.Evaluator.
func (e *Evaluator) Name() string { return "exec" }

// Images returns the sorted names of all images that are mapped to a binary.
func (e *Evaluator) Images() []string { return slices.Sorted(maps.Keys(e.table.Load().binaries)) }

// Evaluate implements evaluation.Evaluator.
func (e *Evaluator) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	table := e.table.Load()
	binary, ok := table.findBinary(req.Image)
	if !ok {
		return evaluation.Response{}, fault.New(fault.NotFound, "no binary is configured for %s", req.Image)
	}
	command := fnproc.Command{Path: binary, Dir: "/", Network: e.cfg.Network.Match(req.Image)}
	own := function.TimeLimit{For: table.maxTime[binary]}
	if own.For > 0 {
		own.Setting = fmt.Sprintf("maxEvaluationTime of function %s in %s", filepath.Base(binary), e.cfg.File)
	}
	return e.local.Evaluate(ctx, req, command, own)
}

// Tags implements nameresolver.TagSource. It returns the tags of a repository that are mapped to a binary.
func (e *Evaluator) Tags(_ context.Context, repository string) (tags []string, known bool, err error) {
	tags, known = e.table.Load().tags[repository]
	return tags, known, nil
}

// spareCount returns the number of spare processes, started in advance, for a binary. It is zero if no image is mapped
// to the binary, for example after a change of the configuration file.
func (e *Evaluator) spareCount(binary string) int { return e.table.Load().prefork[binary] }

// Maintain starts processes of functions in advance, and replaces used processes, until ctx is canceled.
func (e *Evaluator) Maintain(ctx context.Context) error {
	return e.local.Maintain(ctx)
}

// Watch applies changes of the configuration file until ctx is canceled. It logs and ignores invalid changes.
func (e *Evaluator) Watch(ctx context.Context) error {
	filewatch.Follow(ctx, e.log, "exec configuration", e.cfg.File, e.content, e.parseContent, e.applyFile)
	return nil
}

// parseContent parses the content of the configuration file, and adds the file's path to errors.
func (e *Evaluator) parseContent(content []byte) (*table, error) {
	table, err := parseTable(content, e.cfg.Functions, e.cfg.DefaultPrefix, e.cfg.Service.Prefork)
	if err != nil {
		return nil, fmt.Errorf("exec configuration %s: %w", e.cfg.File, err)
	}
	return table, nil
}

// applyFile applies a new version of the configuration file. It logs a warning for each mistake, such as an unknown
// field.
func (e *Evaluator) applyFile(table *table) {
	for _, part := range table.ignored {
		e.log.Warn("part of the exec configuration ignored", "file", e.cfg.File, "part", part)
	}
	for _, image := range table.repeated {
		e.log.Warn("exec configuration names an image twice: the first entry counts", "image", image)
	}
	for _, binary := range table.missingBinaries() {
		e.log.Warn("exec configuration names a function that is not there", "binary", binary)
	}
	e.mu.Lock()
	e.file = table
	e.combine()
	e.mu.Unlock()
	e.log.Info("exec configuration applied", "file", e.cfg.File, "images", len(table.binaries))
	if e.local != nil {
		e.local.Changed()
	}
}

// Use replaces the FunctionConfig objects, and returns the problem of each unusable FunctionConfig. The images of
// an unusable FunctionConfig keep the binaries of the configuration file.
func (e *Evaluator) Use(configs []binaries.Binary) binaries.Problems {
	e.mu.Lock()
	e.configs = configs
	problems := e.combine()
	e.mu.Unlock()
	e.local.Changed()
	return problems
}

// combine merges the configuration file and the FunctionConfigs into the table for evaluations. It logs each new
// problem of a FunctionConfig. Callers must hold e.mu.
func (e *Evaluator) combine() binaries.Problems {
	table, problems := e.file.withConfigs(e.configs, e.cfg.Functions, e.cfg.Service.Prefork)
	for _, config := range slices.Sorted(maps.Keys(problems)) {
		if problems[config] != e.problems[config] {
			e.log.Warn("FunctionConfig without a binary that can be used", "config", config, "problem", problems[config])
		}
	}
	e.problems = problems
	e.table.Store(table)
	return problems
}
