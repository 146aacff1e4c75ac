// SPDX-License-Identifier: Apache-2.0

package kptcompare_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// gateway is the address of the gateway that fnctl uses.
var gateway string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := withGateway(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withGateway starts the gateway with the functions as local binaries, and stops it after run.
func withGateway(run func() int) (int, error) {
	if programs == "" {
		return 0, errors.New("run make kpt-compare, or make kpt-compare-short: they build the programs")
	}
	dir, err := os.MkdirTemp("", "kptcompare")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "config.yaml")
	if err := writeConfig(config); err != nil {
		return 0, err
	}
	if gateway, err = freeAddress(); err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "gateway"))
	cmd.Env = append(os.Environ(), "FNR_ADDRESS="+gateway, "FNR_EXEC_CONFIG="+config,
		"FNR_EXEC_FUNCTIONS="+filepath.Join(programs, "functions"), "FNR_TELEMETRY_METRICS_ADDRESS=off",
		"FNR_SERVE_DRAIN_DELAY=0s", "FNR_DISABLE_RUNTIMES=pod")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { stop(); _ = cmd.Wait() }()
	if err := answers(gateway); err != nil {
		text, _ := os.ReadFile(log.Name())
		return 0, fmt.Errorf("the gateway did not start: %w\n%s", err, text)
	}
	return run(), nil
}

// writeConfig maps the images of the cases to functions.
func writeConfig(file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	functions, err := os.ReadDir(filepath.Join(programs, "functions"))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, "functions:")
	for _, f := range functions {
		fmt.Fprintf(w, "- function: %[1]s\n  images: [\"example.com/%[1]s:v1\"]\n", f.Name())
	}
	return w.Flush()
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// answers returns when a server accepts connections.
func answers(address string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var err error
	for range 1000 {
		var conn net.Conn
		if conn, err = net.Dial("tcp", address); err == nil {
			return conn.Close()
		}
		<-tick.C
	}
	return err
}
