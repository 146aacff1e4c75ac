// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
)

// Lender replaces the pod-manager when a gateway is attacked. It grants pods without delay.
type Lender struct {
	podmanagerv1connect.UnimplementedPodManagerServiceHandler
	Address string

	server *http.Server
	mu     sync.Mutex
	pods   map[string]string // addresses by image
}

func newLender(pods map[string]string) (*Lender, error) {
	l := &Lender{pods: maps.Clone(pods)}
	mux := http.NewServeMux()
	mux.Handle(podmanagerv1connect.NewPodManagerServiceHandler(l))
	address, server, err := Serve(mux)
	l.Address = address
	l.server = server
	return l, err
}

// Serve serves HTTP/1 and unencrypted HTTP/2 on a new loopback address. The caller must close the server.
func Serve(handler http.Handler) (address string, server *http.Server, err error) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server = &http.Server{Handler: handler, Protocols: protocols}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", server, fmt.Errorf("serve: %w", err)
	}
	go func() { _ = server.Serve(listener) }() // returns when its listener closes
	return listener.Addr().String(), server, nil
}

func (l *Lender) close() {
	if l.server != nil {
		_ = l.server.Close()
	}
}

// Lend sets the address of the pod for an image.
func (l *Lender) Lend(image, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[image] = address
}

// Lease grants a pod at once. It returns when the gateway sends its next message or closes the stream.
func (l *Lender) Lease(
	_ context.Context, stream *connect.BidiStream[podmanagerv1.LeaseRequest, podmanagerv1.LeaseResponse],
) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	image := first.GetOpen().GetImage()
	l.mu.Lock()
	address := l.pods[image]
	l.mu.Unlock()
	if address == "" {
		return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("there is no pod of %s", image))
	}
	granted := &podmanagerv1.LeaseResponse_Granted_{Granted: &podmanagerv1.LeaseResponse_Granted{
		Address:   address,
		Pod:       "pod-" + address,
		Namespace: "attack",
		PodUid:    address,
	}}
	if err := stream.Send(&podmanagerv1.LeaseResponse{Message: granted}); err != nil {
		return err
	}
	_, err = stream.Receive()
	return err
}
