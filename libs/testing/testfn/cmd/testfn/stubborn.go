// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// hangTime is the length of "for ever".
const hangTime = 10 * time.Minute

func hang(string) int {
	time.Sleep(hangTime)
	return 1
}

func keep(value string) int {
	memory := use(value)
	defer runtime.KeepAlive(memory)
	return hang("")
}

func ignoreSigterm(string) int {
	signal.Ignore(syscall.SIGTERM)
	return hang("")
}

// die kills the process by a signal, without the handler that Go installs for some signals.
func die(value string) int {
	sig := int(syscall.SIGKILL)
	if value != "" {
		n, err := strconv.Atoi(value)
		check(err)
		sig = n
	}
	readInput()
	write(os.Stderr, "about to die\n")
	restoreDefault(sig)
	check(syscall.Kill(os.Getpid(), syscall.Signal(sig)))
	return hang("")
}

func floodStdout(value string) int { return flood(os.Stdout, value) }
func floodStderr(value string) int { return flood(os.Stderr, value) }

func floodBoth(string) int {
	go flood(os.Stderr, "")
	return flood(os.Stdout, "")
}

// flood writes size bytes to f, endlessly if size is empty. A closed pipe also kills it, by SIGPIPE.
func flood(f *os.File, size string) int {
	left := math.MaxInt
	if size != "" {
		n, err := strconv.Atoi(size)
		check(err)
		left = n
	}
	chunk := bytes.Repeat([]byte("water "), 1000)
	for left > 0 {
		n, err := f.Write(chunk[:min(left, len(chunk))])
		check(err)
		left -= n
	}
	return 0
}
