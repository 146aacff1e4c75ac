// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

const emptyList = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"

// results is a ResourceList with a single result, whose severity is error.
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
	exitOnError(err)
	return input
}

func writeText(f *os.File, text string) {
	_, err := f.WriteString(text)
	exitOnError(err)
}

// writeReply implements behaviours that read their input, write a fixed output and log, and return an exit code.
func writeReply(output, log string, code int) int {
	readInput()
	writeText(os.Stdout, output)
	writeText(os.Stderr, log)
	return code
}

func echo(string) int {
	_, err := os.Stdout.Write(readInput())
	exitOnError(err)
	return 0
}

func help(stream string) int {
	if os.Args[len(os.Args)-1] != "--help" {
		return echo("")
	}
	writeText(map[string]*os.File{"stdout": os.Stdout, "stderr": os.Stderr}[stream], "Usage: the help of testfn\n")
	return 0
}

func empty(string) int        { return writeReply("", "", 0) }
func warn(string) int         { return writeReply(results, "one resource is invalid\n", 0) }
func exit1(string) int        { return writeReply(results, "failed: one resource is invalid\n", 1) }
func exit1Silent(string) int  { return 1 }
func exit1Garbage(string) int { return writeReply("kind: [", "failed halfway\n", 1) }
func garbage(string) int      { return writeReply("kind: [", "all is well\n", 0) }
func badUTF8(string) int      { return writeReply("", "broken: \xff\xfe\xc3(\n", 1) }

func ignoreStdin(string) int {
	writeText(os.Stdout, emptyList)
	return 0
}

func env(string) int {
	readInput()
	writeText(os.Stdout, emptyList+"results:\n")
	for _, kv := range os.Environ() {
		writeText(os.Stdout, fmt.Sprintf("- message: %q\n  severity: info\n", kv))
	}
	return 0
}

func allocateMemory(value string) int {
	useMemory(value)
	return echo("")
}

// useMemory allocates as many bytes as value says, writes to them so that they are really used, and returns them.
func useMemory(value string) []byte {
	size, err := strconv.Atoi(value)
	exitOnError(err)
	memory := make([]byte, size)
	for i := 0; i < size; i += os.Getpagesize() {
		memory[i] = 1 // the kernel allocates a page when it is written to
	}
	return memory
}

func sleep(value string) int {
	d, err := time.ParseDuration(value)
	exitOnError(err)
	time.Sleep(d)
	return echo("")
}

func greet(size string) int {
	floodOutput(os.Stderr, size)
	return echo("")
}

func leaveFiles(value string) int {
	d, err := time.ParseDuration(value)
	exitOnError(err)
	time.Sleep(d)
	return 0
}

// tryAttempt performs the action in value, such as "read:/etc/passwd", whose name is a key of the map attempts. It
// writes a ResourceList whose result is "done" or the error.
func tryAttempt(value string) int {
	readInput()
	name, target, _ := strings.Cut(value, ":")
	attempt, ok := attempts[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "testfn: no attempt %q\n", name)
		return usageStatus
	}
	result := "done"
	if err := attempt(target); err != nil {
		result = err.Error()
	}
	writeText(os.Stdout, emptyList+"results:\n- message: "+strconv.Quote(result)+"\n  severity: info\n")
	return 0
}
