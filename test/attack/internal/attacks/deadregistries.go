// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
)

// Attacks by registries that never complete an answer. The programs' configuration permits these registries.
var (
	silentRegistries = deadRegistries("registries that are silent", func(context.Context, net.Conn) {})
	headerRegistries = deadRegistries("registries with headers only", answerHeader)
	slowRegistries   = deadRegistries("registries at a byte a second", func(ctx context.Context, conn net.Conn) {
		answerHeader(ctx, conn)
		for ctx.Err() == nil {
			retry.Sleep(ctx, time.Second)
			if _, err := conn.Write([]byte{' '}); err != nil {
				return
			}
		}
	})
)

// askers is the number of concurrent callers in attacks by registries that never complete an answer. It exceeds the
// image-resolver's limit of concurrent fetches, so that the attacks reach this limit.
const askers = 200

// deadRegistries returns an attack in which registries never complete a response. A registry calls the function answer
// after a request for a manifest. This function may send the beginning of the response. The connection then stays open
// until the client closes it or ctx ends.
func deadRegistries(name string, answer func(ctx context.Context, conn net.Conn)) Attack {
	return Attack{
		Name: name, Programs: []string{system.FunctionRunner, system.ImageResolver},
		Run: func(ctx context.Context, t *Target) error {
			ctx, cancel := context.WithTimeout(ctx, chooseByTime(t, short, long))
			defer cancel()
			stop, err := t.serveDead(ctx, answer)
			defer stop()
			if err != nil {
				return err
			}
			client := t.newClient()
			defer client.CloseIdleConnections()
			return runAll(askers, func(asker int) error {
				for i := 0; ctx.Err() == nil; i++ {
					host := t.Registries[(asker+i)%len(t.Registries)]
					t.nameRegistry(ctx, client, fmt.Sprintf("%s/fns/dead-%d-%d", host, asker, i))
					retry.Sleep(ctx, retryPause)
				}
				return nil
			})
		},
	}
}

// serveDead runs a registry that never completes a response, at each of the addresses in t.Registries. The returned
// function stop closes the registries' listeners and connections.
func (t *Target) serveDead(
	ctx context.Context, answer func(ctx context.Context, conn net.Conn),
) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	stop = func() {
		cancel()
		serving.Wait()
	}
	for _, address := range t.Registries {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return stop, fmt.Errorf("set up a registry: %w", err)
		}
		context.AfterFunc(ctx, func() { _ = listener.Close() })
		serving.Go(func() { acceptDead(ctx, listener, answer) })
	}
	return stop, nil
}

// acceptDead runs a registry that never completes a response. It accepts connections until ctx ends.
func acceptDead(ctx context.Context, listener net.Listener, answer func(ctx context.Context, conn net.Conn)) {
	var connections sync.WaitGroup
	defer connections.Wait()
	for ctx.Err() == nil {
		conn, err := listener.Accept()
		if err != nil {
			continue // the client closed the connection, or ctx ended and closed the listener
		}
		connections.Go(func() {
			defer func() { _ = conn.Close() }()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			if awaitManifest(conn) {
				answer(ctx, conn)
				_, _ = io.Copy(io.Discard, conn) // returns when the client disconnects or ctx ends
			}
		})
	}
}

// awaitManifest waits for a request for a manifest, and reports whether it received such a request. Before this
// request, clients send requests for /v2/ to check that the registry exists. awaitManifest answers these requests, and
// returns true at the first request for another path.
func awaitManifest(conn net.Conn) bool {
	requests := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(requests)
		if err != nil {
			return false
		}
		if request.URL.Path != "/v2/" {
			return true
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return false
		}
	}
}

// answerHeader sends an answer's headers without the body, so that the client waits for the body.
func answerHeader(_ context.Context, conn net.Conn) {
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.oci.image.manifest.v1+json\r\n"+
		"Content-Length: 100000\r\n\r\n")
}
