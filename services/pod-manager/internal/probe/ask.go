// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/dial"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// firstBackoff and maxBackoff are the delays between two attempts. A wrapper server starts within milliseconds
	// after its container.
	firstBackoff = 5 * time.Millisecond
	maxBackoff   = 100 * time.Millisecond
	// connectTimeout limits a connection with its TLS handshake.
	connectTimeout = time.Second
	// askTimeout limits a health check, including attempts to connect.
	askTimeout = time.Second
)

// asker probes pods with the certificate of this program, if there is a certificate.
type asker struct{ identity *mtls.Identity }

// askUntilServing checks the server of a pod until it is healthy. It returns the last error when ctx is done, and
// closes its connection.
func (a asker) askUntilServing(ctx context.Context, p pool.Probe) error {
	address := p.Address
	transport, err := a.credentialsOf(p.Identity)
	if err != nil {
		return fmt.Errorf("ask %s for its health: %w", address, err)
	}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(transport),
		grpc.WithNoProxy(), // pods are inside of the cluster
		grpc.WithContextDialer(dialPod),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstBackoff, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: connectTimeout,
		}))
	if err != nil {
		return fmt.Errorf("ask %s for its health: %w", address, err)
	}
	defer func() { _ = conn.Close() }() // no longer used
	client := healthv1.NewHealthClient(conn)
	for waits := (retry.Backoff{First: firstBackoff, Max: maxBackoff}); ; {
		last := checkOnce(ctx, client)
		if last == nil {
			return nil
		}
		if err == nil || ctx.Err() == nil {
			err = last // an interrupted check explains less than the check before
		}
		if !waits.Wait(ctx) {
			return fmt.Errorf("ask %s for its health: %w", address, err)
		}
	}
}

// dialPod connects to a pod or its Service, even if the node still lacks the Service's rules.
func dialPod(ctx context.Context, address string) (net.Conn, error) {
	return dial.Staggered(ctx, new(net.Dialer).DialContext, address)
}

// credentialsOf returns the transport credentials for a pod. A pod without an identity is without TLS.
func (a asker) credentialsOf(pod pool.Identity) (credentials.TransportCredentials, error) {
	secure, err := a.identity.ClientOfProven(pod.ID, pod.Secret)
	if err != nil || secure == nil {
		return insecure.NewCredentials(), err
	}
	return credentials.NewTLS(secure), nil
}

// checkOnce checks the health once, as soon as there is a connection.
func checkOnce(ctx context.Context, client healthv1.HealthClient) error {
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
