// SPDX-License-Identifier: Apache-2.0

package rpcfault_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/libs/fault"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// detailedError is an error with a detail.
type detailedError struct{}

func (detailedError) Error() string         { return "function failed" }
func (detailedError) Detail() proto.Message { return &functionrunnerv1.FunctionFailure{ExitCode: 3} }

func TestCodes(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		want   connect.Code
	}{
		"plain":        {"an error without a class is a defect", errors.New("x"), connect.CodeInternal},
		"invalid":      {"", fault.New(fault.Invalid, "x"), connect.CodeInvalidArgument},
		"not found":    {"", fault.New(fault.NotFound, "x"), connect.CodeNotFound},
		"denied":       {"", fault.New(fault.Denied, "x"), connect.CodePermissionDenied},
		"precondition": {"", fault.New(fault.Precondition, "x"), connect.CodeFailedPrecondition},
		"exhausted":    {"", fault.New(fault.Exhausted, "x"), connect.CodeResourceExhausted},
		"unavailable":  {"", fault.New(fault.Unavailable, "x"), connect.CodeUnavailable},
		"deadline": {
			"contexts need no classifying", fmt.Errorf("wait: %w", context.DeadlineExceeded), connect.CodeDeadlineExceeded,
		},
		"canceled": {"", context.Canceled, connect.CodeCanceled},
		"connect's": {
			"an error with a code keeps it", connect.NewError(connect.CodeAborted, errors.New("x")), connect.CodeAborted,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := connect.CodeOf(rpcfault.ToConnect(tc.err)); got != tc.want {
				t.Errorf("code %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
	if err := rpcfault.ToConnect(nil); err != nil {
		t.Errorf("ToConnect(nil) = %v", err)
	}
}

func TestThereAndBack(t *testing.T) {
	sent := fault.WithRetryAfter(fault.New(fault.Exhausted, "queue full"), 3*time.Second)
	got := rpcfault.FromConnect(rpcfault.ToConnect(sent))
	if fault.Of(got) != fault.Exhausted || got.Error() != "queue full" {
		t.Errorf("got %v of class %v", got, fault.Of(got))
	}
	if after, ok := fault.RetryAfter(got); !ok || after != 3*time.Second {
		t.Errorf("retry after %v, %v, want 3s", after, ok)
	}
	if err := rpcfault.FromConnect(nil); err != nil {
		t.Errorf("FromConnect(nil) = %v", err)
	}
}

func TestDetail(t *testing.T) {
	err := rpcfault.ToConnect(fmt.Errorf("evaluate: %w", detailedError{}))
	cerr, ok := errors.AsType[*connect.Error](err)
	if !ok || len(cerr.Details()) != 1 {
		t.Fatalf("got %v, want one detail", err)
	}
	msg, err := cerr.Details()[0].Value()
	if err != nil {
		t.Fatal(err)
	}
	if failure, ok := msg.(*functionrunnerv1.FunctionFailure); !ok || failure.GetExitCode() != 3 {
		t.Errorf("detail %v", msg)
	}
}

func TestTextFitsIntoAHeader(t *testing.T) {
	for _, middle := range []string{"x", "\xff", "x\xff", "ü"} {
		err := rpcfault.ToConnect(errors.New("begin " + strings.Repeat(middle, 1<<20) + " end"))
		cerr, _ := errors.AsType[*connect.Error](err)
		got := cerr.Message()
		if len(got) > 32<<10 || !strings.HasPrefix(got, "begin ") || !strings.HasSuffix(got, " end") {
			t.Errorf("%q: %d bytes, from %.10q", middle, len(got), got)
		}
		if _, err := proto.Marshal(&errdetails.LocalizedMessage{Message: got}); err != nil {
			t.Errorf("%q: the text cannot be sent: %v", middle, err)
		}
	}
}

func TestRetryHintsAreBounded(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 0: 0, time.Minute: time.Minute, 24 * 365 * time.Hour: 5 * time.Minute,
	} {
		received := connect.NewError(connect.CodeResourceExhausted, errors.New("x"))
		detail, err := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(given)})
		if err != nil {
			t.Fatal(err)
		}
		received.AddDetail(detail)
		sent := rpcfault.ToConnect(fault.WithRetryAfter(fault.New(fault.Exhausted, "x"), given))
		for name, err := range map[string]error{"received": received, "sent": sent} {
			if after, ok := fault.RetryAfter(rpcfault.FromConnect(err)); !ok || after != want {
				t.Errorf("%s: a hint of %v is %v, %v, want %v", name, given, after, ok, want)
			}
		}
	}
	endless := &errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: math.MaxInt64, Nanos: math.MaxInt32}}
	if after := rpcfault.RetryAfter(endless); after != 5*time.Minute {
		t.Errorf("a hint without end is %v", after)
	}
}
