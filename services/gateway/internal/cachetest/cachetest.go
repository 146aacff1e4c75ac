// SPDX-License-Identifier: Apache-2.0

//go:build redis

// Package cachetest runs a real server of the Redis protocol in tests, with TLS and a password.
package cachetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Server is a server on loopback.
type Server struct {
	// URL is for clients that use TLS, Plaintext for others.
	URL, Plaintext string
	// CAFile has the server's certificate, and PasswordFile its password.
	CAFile, PasswordFile string

	dir, port, plain string
	process          *exec.Cmd
}

// Start starts a server that ends with the test. The test fails if there is no such program.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{dir: t.TempDir(), port: freePort(t), plain: freePort(t)}
	s.URL, s.Plaintext = "rediss://gateway@127.0.0.1:"+s.port+"/3", "redis://gateway@127.0.0.1:"+s.plain+"/3"
	s.CAFile, s.PasswordFile = filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "password")
	WriteCertificate(t, s.CAFile, filepath.Join(s.dir, "key.pem"))
	s.SetPassword(t, "first")
	s.Restart(t)
	t.Cleanup(func() { s.stop() })
	return s
}

// Restart starts the server again, without what it had, and with the password as it is in its file now.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.stop()
	program, err := exec.LookPath("valkey-server")
	if err != nil {
		program, err = exec.LookPath("redis-server")
	}
	if err != nil {
		t.Fatalf("the tests with the tag redis need a server: run make redis, and put its directory in PATH: %v", err)
	}
	password, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		t.Fatal(err)
	}
	s.process = exec.CommandContext(context.WithoutCancel(t.Context()), program, "--bind", "127.0.0.1",
		"--port", s.plain, "--tls-port", s.port, "--tls-auth-clients", "no",
		"--tls-cert-file", s.CAFile, "--tls-key-file", filepath.Join(s.dir, "key.pem"),
		"--user", "default", "off",
		"--user", "gateway", "on", "~function-runner:result:*", "~test:*", "+get", "+set", "+select",
		">"+strings.TrimSpace(string(password)),
		"--save", "", "--dir", s.dir, "--maxmemory", "64mb")
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	s.awaitPort(t)
}

// awaitPort returns when the server accepts connections.
func (s *Server) awaitPort(t testing.TB) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", "127.0.0.1:"+s.port)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			t.Fatalf("the server does not start: %v\n%s", err, log)
		}
	}
}

// SetPassword writes another password into the file. The server has it after a restart.
func (s *Server) SetPassword(t testing.TB, password string) {
	t.Helper()
	if err := os.WriteFile(s.PasswordFile, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Hang has the server do nothing until Resume is called. Its connections stay.
func (s *Server) Hang(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Resume has a server that hangs go on.
func (s *Server) Resume(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// stop ends the server, also one that hangs.
func (s *Server) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
	s.process = nil
}

// WriteCertificate writes a new certificate for 127.0.0.1 that is its own authority, and its key.
func WriteCertificate(t testing.TB, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// freePort returns a port of loopback that was free a moment ago.
func freePort(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
