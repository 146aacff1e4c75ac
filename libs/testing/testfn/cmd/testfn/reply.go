// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

const emptyList = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"

// results is an output with a single result of severity error.
const results = emptyList + `results:
- message: replicas must not be negative
  severity: error
  resourceRef:
    apiVersion: apps/v1
    kind: Deployment
    namespace: shop
    name: cart
  field:
    path: spec.replicas
`

func readInput() []byte {
	input, err := io.ReadAll(os.Stdin)
	check(err)
	return input
}

func write(f *os.File, text string) {
	_, err := f.WriteString(text)
	check(err)
}

// reply reads the input, writes output and log, and returns code.
func reply(output, log string, code int) int {
	readInput()
	write(os.Stdout, output)
	write(os.Stderr, log)
	return code
}

func echo(string) int {
	_, err := os.Stdout.Write(readInput())
	check(err)
	return 0
}

func empty(string) int        { return reply("", "", 0) }
func warn(string) int         { return reply(results, "one resource is invalid\n", 0) }
func exit1(string) int        { return reply(results, "failed: one resource is invalid\n", 1) }
func exit1Silent(string) int  { return 1 }
func exit1Garbage(string) int { return reply("kind: [", "failed halfway\n", 1) }
func garbage(string) int      { return reply("kind: [", "all is well\n", 0) }
func badUTF8(string) int      { return reply("", "broken: \xff\xfe\xc3(\n", 1) }

func ignoreStdin(string) int {
	write(os.Stdout, emptyList)
	return 0
}

func env(string) int {
	readInput()
	write(os.Stdout, emptyList+"results:\n")
	for _, kv := range os.Environ() {
		write(os.Stdout, fmt.Sprintf("- message: %q\n  severity: info\n", kv))
	}
	return 0
}

func allocate(value string) int {
	use(value)
	return echo("")
}

// use uses so many bytes of memory, which it returns.
func use(value string) []byte {
	size, err := strconv.Atoi(value)
	check(err)
	memory := make([]byte, size)
	for i := 0; i < size; i += os.Getpagesize() {
		memory[i] = 1 // the kernel allocates a page when it is written to
	}
	return memory
}

func sleep(value string) int {
	d, err := time.ParseDuration(value)
	check(err)
	time.Sleep(d)
	return echo("")
}

func greet(size string) int {
	flood(os.Stderr, size)
	return echo("")
}

func leave(value string) int {
	d, err := time.ParseDuration(value)
	check(err)
	time.Sleep(d)
	return 0
}
