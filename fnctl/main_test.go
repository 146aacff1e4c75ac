// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// asProgram makes the tests' binary fnctl itself.
const asProgram = "FNCTL_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" { //nolint:forbidigo // it is not a setting
		main()
		return
	}
	os.Exit(m.Run())
}

// TestSignalsEndFnctlInGoodOrder signals fnctl while it waits for a gateway that does not answer.
func TestSignalsEndFnctlInGoodOrder(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = silent.Close() }()
			list := filepath.Join(t.TempDir(), "settings.yaml")
			resource := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
			if err := os.WriteFile(list, []byte(resource), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0], "eval", filepath.Dir(list), "--image", "fn:v1", "--address", silent.Addr().String())
			cmd.Env = []string{asProgram + "=1", "HOME=" + t.TempDir()}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = silent.(*net.TCPListener).SetDeadline(time.Now().Add(5 * time.Minute))
			conn, err := silent.Accept() // from then on it waits
			if err != nil {
				t.Fatal(err, cmd.Process.Kill())
			}
			defer func() { _ = conn.Close() }()
			_ = cmd.Process.Signal(signal)
			_ = cmd.Wait()
			if cmd.ProcessState.ExitCode() < 1 {
				t.Errorf("it ended with %v, want an exit code of its own\n%s", cmd.ProcessState, out.String())
			}
		})
	}
}

// TestProgramsInheritNoDescriptors starts fnctl with ten files open that a program of this machine looks for.
func TestProgramsInheritNoDescriptors(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("descriptors are not listed here")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "settings.yaml"),
		[]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const look = `for fd in 3 4 5 6 7 8 9; do if [ -e /proc/self/fd/$fd ]; then exit 1; fi; done; cat`
	cmd := exec.Command(os.Args[0], "eval", dir, "--exec", "sh -c '"+look+"'")
	cmd.Env = []string{asProgram + "=1", "HOME=" + t.TempDir(), "PATH=/usr/bin:/bin"}
	for range 10 {
		file, err := os.Open("/")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
