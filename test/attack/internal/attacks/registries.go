// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
	"github.com/krm-function-runner/function-runner/test/attack/internal/wire"
	"github.com/krm-function-runner/function-runner/test/internal/sandbox"
)

// innerRegistries requests images from registries at internal addresses, such as the server's loopback and the
// address where clouds serve credentials. The program must not connect to these addresses.
var innerRegistries = Attack{
	Name:     "registries inside",
	Programs: []string{system.FunctionRunner, system.ImageResolver},
	Short:    []string{system.ImageResolver},
	Run: func(ctx context.Context, t *Target) error {
		trap := new(trap)
		defer trap.close()
		port, err := trap.listen(ctx, "127.0.0.1:0")
		if err != nil {
			return err
		}
		hosts := []string{"127.0.0.1:" + port, "localhost:" + port, "127.1.2.3:" + port, "0.0.0.0:" + port}
		if sandbox.Possible() {
			for _, p := range []string{"80", "443", port} {
				_, err := trap.listen(ctx, net.JoinHostPort(sandbox.Metadata, p))
				if err != nil {
					return err
				}
			}
			hosts = append(hosts, sandbox.Metadata, sandbox.Metadata+":80", sandbox.Metadata+":"+port)
		}
		client := t.newClient()
		defer client.CloseIdleConnections()
		for _, host := range hosts {
			t.nameRegistry(ctx, client, host+"/fns/any")
		}
		return trap.checkUnreached()
	},
}

// newClient returns an HTTP client with a single connection from the attackers' address.
func (t *Target) newClient() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	dial := func(ctx context.Context, _, address string) (net.Conn, error) { return wire.Dial(ctx, address) }
	return &http.Client{Transport: &http.Transport{Protocols: protocols, DialContext: dial}}
}

// nameRegistry sends requests that make the program fetch an image of a repository and list the repository's tags.
func (t *Target) nameRegistry(ctx context.Context, client *http.Client, repository string) {
	if t.Name == system.FunctionRunner {
		conn, err := t.connectTo()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		client := evaluator.NewFunctionEvaluatorClient(conn)
		list := List("", "", 0)
		for _, request := range []*evaluator.EvaluateFunctionRequest{
			{Image: repository + ":v1", ResourceList: list},
			{Image: repository, Tag: ">=1", ResourceList: list},
		} {
			_, _ = client.EvaluateFunction(ctx, request)
		}
		return
	}
	resolver := imageresolverv1connect.NewImageResolverServiceClient(client, "http://"+t.Address)
	_, _ = resolver.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: repository + ":v1"})
	_, _ = resolver.ListTags(ctx, &imageresolverv1.ListTagsRequest{Repository: repository})
}

// trap listens on addresses to which the program must not connect, and records the program's connections.
type trap struct {
	listeners []net.Listener
	mu        sync.Mutex
	visited   []error
}

// listen adds an address to the trap, and returns the port.
func (t *trap) listen(ctx context.Context, address string) (port string, err error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("set a trap: %w", err)
	}
	t.listeners = append(t.listeners, listener)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the trap is closed
			}
			_ = conn.Close()
			err = fmt.Errorf("the program connected to %s because an image is named so", listener.Addr())
			t.mu.Lock()
			t.visited = append(t.visited, err)
			t.mu.Unlock()
		}
	}()
	_, port, err = net.SplitHostPort(listener.Addr().String())
	return port, err
}

func (t *trap) close() {
	for _, listener := range t.listeners {
		_ = listener.Close()
	}
}

// checkUnreached returns nil if the program connected to none of the trap's addresses. Otherwise, it returns an error.
func (t *trap) checkUnreached() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.visited) == 0 {
		return nil
	}
	return errors.Join(t.visited[0], fmt.Errorf("and %d times more", len(t.visited)-1))
}
