// SPDX-License-Identifier: Apache-2.0

// Command overhead measures the time that the gateway and the wrapper-server add to a function. It compares them with a
// new process per evaluation (the bare process) and with a minimal gRPC server. It measures all of these alternately in
// the same run, so that changes of the machine's speed affect all results. Further tables compare, for example,
// sandboxes with podman, and evaluations with and without restricted access (confinement).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/servermain"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

func run() error {
	b := bench{out: os.Stdout, logLevel: "1", stderr: os.Stderr}
	flag.StringVar(&b.bin, "bin", "../.build/bin", "directory with function-runner and wrapper-server")
	flag.StringVar(&b.functions, "functions", "../.build/functions", "directory with the functions and their config.yaml")
	flag.StringVar(&b.image, "image", "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5", "image of the function")
	flag.StringVar(&b.function, "function", "set-namespace", "its binary")
	flag.StringVar(&b.document, "document", "", "Markdown file to write the figures into, in which each table has a place")
	flag.StringVar(&b.items, "items", "1,200,2000", "numbers of items in the lists")
	flag.StringVar(&b.callers, "callers", "1,2,4,8", "numbers of callers at once")
	flag.StringVar(&b.ways, "ways", "bare,hop,gateway,wrapper",
		"ways to measure, of which the first is what the others are compared with; gateway-np and wrapper-np are without "+
			"prefork")
	flag.DurationVar(&b.budget, "budget", 30*time.Second, "about how long each measurement may take")
	flag.DurationVar(&b.block, "block", time.Second, "how long each turn of a way is")
	flag.StringVar(&b.examples, "examples", "../.build/examples", "directory with the program that serves images")
	flag.StringVar(&b.launcher, "sandbox", "auto", "what starts sandboxes, as in FNR_SANDBOX")
	flag.StringVar(&b.podman, "podman", "podman run --rm -i --network none --user 65534 --security-opt no-new-privileges",
		"how podman runs an image, which comes behind it")
	flag.StringVar(&b.kpt, "kpt", "../.build/kptcompare/kpt", "kpt, which make kpt-compare builds")
	tables := flag.String("tables", "overhead,throughput,mutualtls,sandboxes,local,first,confinement,telemetry",
		"what to measure: what servers add to the bare process, the exec evaluator beside shells, mutual TLS beside "+
			"plaintext, sandboxes beside podman, fnctl --local beside kpt, its first evaluations beside bubblewrap, what "+
			"confinement and telemetry add to the gateway, and hits, memory and round-trips, which are benchmarks of Go")
	insert := flag.String("insert", "",
		"directory with figures of the test bed: write them into the document, and measure nothing")
	lend := flag.String("lend", "", "serve leases at this address, of the pod in the arguments: for the program itself")
	port := flag.String("hop", "", "serve as the hop, on this port: for the program itself")
	metrics := flag.String("observe", "", "be the collector, and scrape these metrics: for the program itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *metrics != "" {
		return runObserver(ctx, *metrics)
	}
	if *port != "" {
		return serveHop(ctx, *port, filepath.Join(b.functions, b.function))
	}
	if *lend != "" {
		servermain.Slacken() // allow late timers, as the real pod-manager does
		var l lender
		if err := l.parse(append([]string{*lend}, flag.Args()...)); err != nil {
			return err
		}
		return l.serve(ctx)
	}
	if *insert != "" {
		return b.insertFigures(*insert)
	}
	return b.measureTables(ctx, *tables)
}
