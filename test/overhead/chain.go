// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/test/internal/pki"
)

// chain contains the three servers for evaluations in a pod: a gateway, a minimal pod-manager and a wrapper-server.
type chain struct {
	way

	servers []*server
}

// stop stops all servers, in the reverse order of their start.
func (c *chain) stop() {
	for i := range c.servers {
		c.servers[len(c.servers)-1-i].stop()
	}
}

// startChain starts a gateway, a minimal pod-manager and a wrapper-server. If secure is true, they use mutual TLS
// with certificates below dir. The caller must stop the servers, even after an error.
func (b *bench) startChain(ctx context.Context, dir string, secure bool) (*chain, error) {
	c := &chain{way: way{name: "plaintext"}}
	var pod, gateway, lender []string
	id, secret, scheme, certificate := "", "", "http://", ""
	var env []string
	if secure {
		c.name = "mutual TLS"
		id = podID
		secret = podSecret
		scheme = "https://"
		authority, err := pki.NewAuthority("overhead")
		if err != nil {
			return c, err
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return c, err
		}
		own, err := writeCertificate(authority, dir, "gateway")
		if err != nil {
			return c, err
		}
		if certificate, err = writeCertificate(authority, dir, "pod-manager"); err != nil {
			return c, err
		}
		gateway = []string{"FNR_TLS_DIRECTORY=" + own}
		env = []string{"FNR_TLS_SECRET=" + secret}
		pod = []string{
			"--tls-id=" + id, "--tls-authorities=" + string(authority.Cert), "--tls-callers=" + gatewayID,
			"--environment=FNR_TLS_SECRET",
		}
	}
	wrapper, err := b.startWrapper(ctx, filepath.Join(b.functions, b.function), env, pod...)
	if err != nil {
		return c, err
	}
	c.servers = append(c.servers, wrapper)
	lender = []string{certificate, wrapper.conn.Target(), id, secret}
	manager, err := b.startLender(ctx, lender...)
	if err != nil {
		return c, err
	}
	c.servers = append(c.servers, manager)
	front, err := b.startFront(ctx, append(gateway, "FNR_POD_MANAGER="+scheme+manager.conn.Target())...)
	if err != nil {
		return c, err
	}
	c.servers = append(c.servers, front)
	c.evaluate = remoteWay(front.conn, "example.com/fn:v1")
	return c, nil
}

// writeCertificate issues a certificate for a program, and writes it, its key and the authority's certificate to a new
// directory below dir. It returns this directory.
func writeCertificate(authority *pki.Authority, dir, program string) (string, error) {
	pair, err := authority.Program(&url.URL{Scheme: "spiffe", Host: "function-runner", Path: "/" + program})
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, program)
	err = os.Mkdir(dir, 0o700)
	for name, content := range map[string][]byte{
		mtls.CertificateFile: pair.Cert, mtls.KeyFile: pair.Key, mtls.AuthoritiesFile: authority.Cert,
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return dir, err
}

// startLender starts a minimal pod-manager, as another process of this program.
func (b *bench) startLender(ctx context.Context, args ...string) (*server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.startServer(ctx, port, nil, self, append([]string{"-lend", "127.0.0.1:" + port}, args...)...)
}

// startFront starts a gateway that evaluates all functions in pods.
func (b *bench) startFront(ctx context.Context, env ...string) (*server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	env = append(env, "FNR_ADDRESS=127.0.0.1:"+port, "FNR_DISABLE_RUNTIMES=exec,sandbox", "FNR_TELEMETRY_LOG_VERBOSITY=1")
	return b.startServer(ctx, port, env, filepath.Join(b.bin, "gateway"))
}
