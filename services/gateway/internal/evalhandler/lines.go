// SPDX-License-Identifier: Apache-2.0

package evalhandler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// lines writes the log lines about evaluations, up to a maximum number per second. Failures have a separate
// maximum, so that many successes do not suppress the lines of failures.
type lines struct {
	log               *slog.Logger
	output            bool // true if the output of functions is logged
	succeeded, failed sampler
}

func newLines(log *slog.Logger, output bool, perSecond float64) *lines {
	l := &lines{log: log, output: output}
	for _, s := range []*sampler{&l.succeeded, &l.failed} {
		s.limiter = rate.NewLimiter(rate.Limit(perSecond), int(math.Ceil(perSecond)))
	}
	return l
}

// sampler limits the number of log lines per second, and counts the evaluations that were not logged.
type sampler struct {
	limiter  *rate.Limiter
	unlogged atomic.Int64 // number of evaluations not logged since the last log line
}

// admitLine reports whether the maximum number of lines per second permits another log line. It also returns the number
// of evaluations that were not logged since the last log line. At the log level debug, every evaluation is logged.
func (l *lines) admitLine(ctx context.Context, s *sampler) (unlogged int64, ok bool) {
	switch {
	case l.log.Enabled(ctx, slog.LevelDebug):
		return 0, true
	case !s.limiter.Allow():
		s.unlogged.Add(1)
		return 0, false
	default:
		return s.unlogged.Swap(0), true
	}
}

func (l *lines) logEvaluation(ctx context.Context, s sample) {
	level, sampler := levelOf(s.err), &l.succeeded
	if s.err != nil {
		sampler = &l.failed
	}
	if !l.log.Enabled(ctx, level) {
		return
	}
	unlogged, ok := l.admitLine(ctx, sampler)
	if !ok {
		return
	}
	attrs := append(lineAttributes(ctx, s), slog.Int64("unlogged", unlogged))
	if s.err == nil {
		l.log.LogAttrs(ctx, level, "evaluated", attrs...)
		return
	}
	l.log.LogAttrs(ctx, level, "evaluation failed", append(attrs, l.errorAttributes(s.err)...)...)
}

// lineAttributes returns the attributes of an evaluation's log line, without the error. No attribute contains parts of
// the function's input or output. The logger omits empty attributes.
func lineAttributes(ctx context.Context, s sample) []slog.Attr {
	return []slog.Attr{
		slog.String("image", s.given), slog.String("resolved", s.image.String()), slog.String("evaluator", s.evaluator),
		slog.String("code", codeOf(s.err)), slog.String("fault", s.party), slog.String("severity", worstSeverity(s)),
		slog.Float64("seconds", s.took.Seconds()),
		slog.Int("request_bytes", s.requestBytes), slog.Int("response_bytes", s.responseBytes),
		slog.Bool("cold_start", s.measured.Leased().ColdStart), slog.Int("attempts", s.measured.Attempts()),
		slog.String("digest", s.imageDigest()), slog.String("pod", s.measured.Leased().Pod),
		slog.String("caller", rpcserve.Caller(ctx)),
		slog.String("input_sha256", s.inputSHA256), slog.String("output_sha256", s.outputSHA256),
	}
}

// hashList returns the SHA-256 of a resource list, which identifies the list in the log without showing its content.
// The hash is empty if the log verbosity is below 3, because hashing a megabyte takes about a millisecond.
func (l *lines) hashList(ctx context.Context, list []byte) string {
	if !l.log.Enabled(ctx, telemetry.LevelDetail) || list == nil {
		return ""
	}
	sum := sha256.Sum256(list)
	return hex.EncodeToString(sum[:])
}

// imageDigest returns the digest of the executed image, or the digest in the request if the executed image is unknown.
func (s sample) imageDigest() string {
	if s.resolved != "" {
		return s.resolved
	}
	if _, digest, ok := strings.Cut(s.measured.Leased().Image, "@"); ok {
		return digest
	}
	return s.image.Digest
}

// errorAttributes returns the log attributes of an error. The error for an invalid resource list contains parts of the
// list, and a failed function's error contains its output. Both may be secret. Unless LogFunctionOutput is true, the
// log does not contain them.
func (l *lines) errorAttributes(err error) []slog.Attr {
	if text, ok := describeListError(err); ok && !l.output {
		return []slog.Attr{slog.String("error", text)}
	}
	failure, ok := errors.AsType[*function.Failure](err)
	if !ok || l.output || failure.Reason == function.NotStarted {
		return []slog.Attr{slog.Any("error", err)}
	}
	return []slog.Attr{
		slog.String("reason", failure.Reason.String()), slog.Int("exit_code", failure.ExitCode),
		slog.String("signal", failure.Signal),
	}
}

// logRejection logs a request that was rejected before it was read completely, such as for lack of memory.
func (l *lines) logRejection(ctx context.Context, err error) {
	unlogged, ok := l.admitLine(ctx, &l.failed)
	if !ok {
		return
	}
	l.log.Log(ctx, levelOf(err), "request rejected", "code", fault.Of(err).String(), "fault", partyOf(err, ""),
		"error", err, "caller", rpcserve.Caller(ctx), "unlogged", unlogged)
}

// levelOf returns the log level for an evaluation with the error err. Warnings and errors are for operators, so
// failures of functions and mistakes of callers are logged at level info.
func levelOf(err error) slog.Level {
	if err == nil {
		return slog.LevelInfo
	}
	if _, ok := errors.AsType[*function.Failure](err); ok {
		return slog.LevelInfo
	}
	switch fault.Of(err) {
	case fault.Internal:
		return slog.LevelError
	case fault.Precondition, fault.Exhausted, fault.Unavailable:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}
