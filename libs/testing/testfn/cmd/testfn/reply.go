// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const emptyList = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"

// results is a ResourceList with a single result of the severity error.
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

// reply returns a behaviour with a fixed output, log and exit code. The behaviour reads its input first.
func reply(output, log string, code int) behaviour {
	return func(string) int {
		readInput()
		writeText(os.Stdout, output)
		writeText(os.Stderr, log)
		return code
	}
}

// parseInt returns the number in the value of a behaviour.
func parseInt(value string) int {
	n, err := strconv.Atoi(value)
	exitOnError(err)
	return n
}

// pause waits for the duration in the value of a behaviour.
func pause(value string) {
	d, err := time.ParseDuration(value)
	exitOnError(err)
	time.Sleep(d)
}

func echo(string) int {
	_, err := os.Stdout.Write(readInput())
	exitOnError(err)
	return 0
}

func help(stream string) int {
	if !slices.Equal(os.Args[2:], []string{"--help"}) {
		return echo("")
	}
	writeText(map[string]*os.File{"stdout": os.Stdout, "stderr": os.Stderr}[stream], "Usage: the help of testfn\n")
	return 0
}

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

// useMemory returns as many bytes as value specifies. It writes to each page, so that the bytes really occupy memory.
func useMemory(value string) []byte {
	size := parseInt(value)
	memory := make([]byte, size)
	for i := 0; i < size; i += os.Getpagesize() {
		memory[i] = 1 // the kernel allocates a page at the first write to it
	}
	return memory
}

func sleep(value string) int {
	pause(value)
	return echo("")
}

func greet(size string) int {
	floodOutput(os.Stderr, size)
	return echo("")
}

func leaveFiles(value string) int {
	pause(value)
	return 0
}

// tryAttempt tries an action that a confined function must not be able to perform, such as "read:/etc/passwd". It
// writes a ResourceList whose result contains "done" or the error.
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
