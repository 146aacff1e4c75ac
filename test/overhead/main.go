// Command overhead measures what the gateway and the wrapper server add to a
// function: it runs one function as a bare process, through the gateway's exec
// evaluator and through a wrapper server, all three in the same run and in turns, and
// prints their times beside each other.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

func run() error {
	b := bench{out: os.Stdout}
	flag.StringVar(&b.bin, "bin", "../.build/bin", "folder with function-runner and wrapper-server")
	flag.StringVar(&b.functions, "functions", "../.build/functions", "folder with the functions and their config.yaml")
	flag.StringVar(&b.image, "image", "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5", "image of the function")
	flag.StringVar(&b.function, "function", "set-namespace", "its binary")
	flag.StringVar(&b.items, "items", "1,200,2000", "numbers of items in the lists")
	flag.StringVar(&b.ways, "ways", "bare,gateway,wrapper", "ways to measure, of which the first is what the others are compared with")
	flag.StringVar(&b.prefork, "prefork", "2", "how many processes the servers keep started, 0 for none")
	flag.IntVar(&b.budget, "budget", 60, "about how many seconds each measurement may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return b.run(ctx)
}
