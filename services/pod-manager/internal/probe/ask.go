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
	// firstBackoff is the delay after the first failed attempt to check a pod's health. Further delays grow up to
	// maxBackoff. They are short, because a wrapper server starts within milliseconds after its container.
	firstBackoff = 5 * time.Millisecond
	maxBackoff   = 100 * time.Millisecond
	// connectTimeout limits an attempt to connect to a pod, including the TLS handshake.
	connectTimeout = time.Second
	// askTimeout limits a single health check, including the attempts to connect.
	askTimeout = time.Second
)

// asker sends health checks to pods. It presents the certificate of this program, if identity contains a certificate.
type asker struct{ identity *mtls.Identity }

// probeUntilServing sends health checks to a pod until its wrapper server is healthy. Once ctx is done, it returns the
// error of the last complete check.
func (a asker) probeUntilServing(ctx context.Context, p pool.Probe) error {
	address := p.Address
	transport, err := a.credentialsOf(p.Identity)
	if err != nil {
		return fmt.Errorf("check the health of %s: %w", address, err)
	}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(transport),
		grpc.WithNoProxy(), // pods are inside the cluster
		grpc.WithContextDialer(dialPod),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstBackoff, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: connectTimeout,
		}))
	if err != nil {
		return fmt.Errorf("check the health of %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }() // an error has no consequence
	client := healthv1.NewHealthClient(conn)
	for waits := (retry.Backoff{First: firstBackoff, Max: maxBackoff}); ; {
		last := checkOnce(ctx, client)
		if last == nil {
			return nil
		}
		if err == nil || ctx.Err() == nil {
			err = last // ignore the error of an interrupted check
		}
		if !waits.Wait(ctx) {
			return fmt.Errorf("check the health of %s: %w", address, err)
		}
	}
}

// dialPod connects to a pod or its Service. If the first attempt gets no response, it starts further attempts. The
// packets of the first attempt are lost if the node has not received the Service's routing rules yet.
func dialPod(ctx context.Context, address string) (net.Conn, error) {
	return dial.Staggered(ctx, new(net.Dialer).DialContext, address, func(error) {})
}

// credentialsOf returns the credentials for calls to a pod: TLS if the pod has an identity, or else plaintext.
func (a asker) credentialsOf(pod pool.Identity) (credentials.TransportCredentials, error) {
	secure, err := a.identity.ClientOfProven(pod.ID, pod.Secret)
	if err != nil || secure == nil {
		return insecure.NewCredentials(), err
	}
	return credentials.NewTLS(secure), nil
}

// checkOnce waits until the connection to a pod is ready, and sends a single health check.
func checkOnce(ctx context.Context, client healthv1.HealthClient) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := client.Check(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	if answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return errors.New("its status is " + answer.GetStatus().String())
	}
	return nil
}
