// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// inherited is the file descriptor of the listener that the telemetry receiver's process inherits from this process.
const inherited = 3

// startObserver starts a process that receives telemetry, and returns its URL. The process replaces the OpenTelemetry
// Collector and the Prometheus that run on other machines in production. It has the lowest priority, to avoid slowing
// down the measured programs.
func startObserver(ctx context.Context, metrics string) (url string, stop func(), err error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = listener.Close() }()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = file.Close() }()
	self, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, "nice", "-n", "19", self, "-observe", metrics)
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the collector: %w", err)
	}
	return "http://" + listener.Addr().String(), func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}, nil
}

// runObserver discards all requests to the inherited listener, and scrapes metrics every second, until ctx ends.
func runObserver(ctx context.Context, metrics string) error {
	listener, err := net.FileListener(os.NewFile(inherited, "listener"))
	if err != nil {
		return fmt.Errorf("take over the listener: %w", err)
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		}),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	done := make(chan struct{})
	go func() {
		defer close(done)
		scrapeMetrics(ctx, metrics)
	}()
	defer func() { <-done }()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// scrapeMetrics reads and discards metrics every second until ctx ends.
func scrapeMetrics(ctx context.Context, url string) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return
		}
		req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // the gateway has not started yet, or is about to exit
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}
