// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// firstBackoff and maxBackoff are the times between two attempts. A wrapper
	// server takes some milliseconds to start once its container does.
	firstBackoff = 5 * time.Millisecond
	maxBackoff   = 100 * time.Millisecond
	// connectTimeout bounds one attempt to connect: before the rules for a Service
	// are in place its address swallows what is sent to it, and TCP would try again
	// after a second.
	connectTimeout = 250 * time.Millisecond
	// askTimeout bounds one question, with all attempts to connect.
	askTimeout = time.Second
)

// ask asks the server at address until it serves. It returns what was wrong last when
// ctx ends. No connection is left behind.
func ask(ctx context.Context, address string) error {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(), // a proxy is for what is outside; pods are here
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstBackoff, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: connectTimeout,
		}))
	if err != nil {
		return fmt.Errorf("ask %s for its health: %w", address, err)
	}
	defer func() { _ = conn.Close() }() // it has done its work
	client := healthv1.NewHealthClient(conn)
	for waits := (retry.Backoff{First: firstBackoff, Max: maxBackoff}); ; {
		last := attempt(ctx, client)
		if last == nil {
			return nil
		}
		if err == nil || ctx.Err() == nil {
			err = last // one that was cut short says less than the one before
		}
		if !waits.Wait(ctx) {
			return fmt.Errorf("ask %s for its health: %w", address, err)
		}
	}
}

// attempt asks once, as soon as there is a connection.
func attempt(ctx context.Context, client healthv1.HealthClient) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := client.Check(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	if answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return errors.New("it says that it is " + answer.GetStatus().String())
	}
	return nil
}
