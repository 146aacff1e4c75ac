// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// Timeouts of connections to the registry, for clients on the same machine.
const (
	headerTimeout   = 10 * time.Second
	transferTimeout = 5 * time.Minute
	idleTimeout     = time.Minute
)

// serveRegistry serves a registry with the images until ctx is done. It writes the registry's address to out once
// clients can pull the images.
func serveRegistry(ctx context.Context, dir string, specs []image.Spec, out io.Writer) error {
	blobs := filepath.Join(dir, "blobs")
	if err := os.MkdirAll(blobs, 0o750); err != nil {
		return fmt.Errorf("keep images: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	quiet := log.New(io.Discard, "", 0)
	content := registry.New(registry.Logger(quiet), registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)))
	readers := &readOnly{content: content}
	server := &http.Server{
		Handler: readers, ErrorLog: quiet, ReadHeaderTimeout: headerTimeout,
		ReadTimeout: transferTimeout, WriteTimeout: transferTimeout, IdleTimeout: idleTimeout,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	err = pushImages(ctx, listener.Addr().String(), filepath.Join(dir, "layers"), specs)
	if err == nil {
		readers.closed.Store(true)
		_, err = fmt.Fprintln(out, listener.Addr())
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
			return err
		}
	}
	err = errors.Join(err, server.Close()) // closes the connections of clients, too
	<-ended
	return err
}

func pushImages(ctx context.Context, host, dir string, specs []image.Spec) error {
	images, err := image.Builder{Dir: dir}.BuildAll(ctx, specs)
	if err != nil {
		return err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	to := image.Registry{Host: host, Auth: authn.Anonymous, Transport: transport}
	for i, spec := range specs {
		if _, err := to.Push(ctx, spec.Name, images[i]); err != nil {
			return err
		}
	}
	return nil
}

// readOnly serves a registry that accepts pushes until closed is set.
type readOnly struct {
	content http.Handler
	closed  atomic.Bool
}

func (r *readOnly) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.closed.Load() && req.Method != http.MethodGet && req.Method != http.MethodHead {
		http.Error(w, "nothing can be pushed here", http.StatusMethodNotAllowed)
		return
	}
	r.content.ServeHTTP(w, req)
}
