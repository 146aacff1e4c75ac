// SPDX-License-Identifier: Apache-2.0

// Command toolbox is a tool that tests on clusters run in pods. Its first argument is a command:
//
//	serve ADDRESS TEXT  answer every HTTP request with the text
//	collect ADDRESS     accept traces by OTLP over HTTP, and print their spans
//	get URL             print the answer to an HTTP request, retried until it succeeds
//	resolve NAME        print the addresses of a name
//	list DIRECTORY      print the names in a directory
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// requestTimeout is the timeout of a single request or look-up.
	requestTimeout = 5 * time.Second
	// retryTimeout is the time limit for all attempts of a request. The first attempts may fail, because a new Service
	// reaches its pods only after some time.
	retryTimeout, pause = time.Minute, 100 * time.Millisecond
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 3 && args[0] == "serve" {
		return serveText(ctx, args[1], args[2])
	}
	if len(args) == 2 && args[0] == "collect" {
		return collectTraces(ctx, args[1])
	}
	if len(args) == 2 && args[0] == "get" {
		return getURL(ctx, args[1])
	}
	if len(args) != 2 {
		return fmt.Errorf("arguments %q: want serve ADDRESS TEXT, collect ADDRESS, get URL, resolve NAME or list DIRECTORY",
			args)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	switch args[0] {
	case "resolve":
		addresses, err := net.DefaultResolver.LookupHost(ctx, args[1])
		fmt.Println(addresses)
		return err
	case "list":
		return listDirectory(args[1])
	default:
		return fmt.Errorf("unknown command %q: want serve, collect, get, resolve or list", args[0])
	}
}

func serveText(ctx context.Context, address, text string) error {
	return serveHTTP(ctx, address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
}

// serveHTTP serves HTTP at address until ctx ends.
func serveHTTP(ctx context.Context, address string, handler http.Handler) error {
	server := &http.Server{Addr: address, ReadHeaderTimeout: requestTimeout, Handler: handler}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

func listDirectory(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		fmt.Println(entry.Name())
	}
	return err
}

// getURL prints the response to a GET request. It retries failed requests until retryTimeout.
func getURL(ctx context.Context, url string) error {
	deadline := time.Now().Add(retryTimeout)
	for {
		err := sendRequest(ctx, url)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func sendRequest(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(asked)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
