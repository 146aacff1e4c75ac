// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// hangTime is the time after which a hanging function exits, so that broken tests do not leave processes for ever.
const hangTime = 10 * time.Minute

func hang(string) int {
	time.Sleep(hangTime)
	return 1
}

func keepFiles(value string) int {
	memory := useMemory(value)
	defer runtime.KeepAlive(memory)
	return hang("")
}

func ignoreSigterm(string) int {
	signal.Ignore(syscall.SIGTERM)
	return hang("")
}

// die kills this process with a signal, even if Go's runtime handles the signal. The argument value is the signal's
// number. The default is SIGKILL.
func die(value string) int {
	sig := int(syscall.SIGKILL)
	if value != "" {
		sig = parseInt(value)
	}
	readInput()
	writeText(os.Stderr, "about to die\n")
	restoreDefault(sig)
	exitOnError(syscall.Kill(os.Getpid(), syscall.Signal(sig)))
	return hang("")
}

func floodStdout(value string) int { return floodOutput(os.Stdout, value) }
func floodStderr(value string) int { return floodOutput(os.Stderr, value) }

func floodBoth(string) int {
	go floodOutput(os.Stderr, "")
	return floodOutput(os.Stdout, "")
}

// floodOutput writes the number of bytes in the argument size to f. If size is an empty string, it writes until the
// reader closes the pipe and SIGPIPE kills this program.
func floodOutput(f *os.File, size string) int {
	left := math.MaxInt
	if size != "" {
		left = parseInt(size)
	}
	chunk := bytes.Repeat([]byte("water "), 1000)
	for left > 0 {
		n, err := f.Write(chunk[:min(left, len(chunk))])
		exitOnError(err)
		left -= n
	}
	return 0
}

// fillDisk writes files of 1 MiB to the temporary directory, and hangs. The argument value is the number of files.
func fillDisk(value string) int {
	n := parseInt(value)
	readInput()
	for range n {
		f, err := os.CreateTemp("", "fill")
		exitOnError(err)
		_, err = f.Write(make([]byte, 1<<20))
		exitOnError(err)
		exitOnError(f.Close())
	}
	return hang("")
}

// nestDirectories creates nested directories in the temporary directory, and hangs. The argument value is the number
// of directories.
func nestDirectories(value string) int {
	n := parseInt(value)
	readInput()
	exitOnError(os.Chdir(os.TempDir()))
	for range n {
		exitOnError(os.Mkdir("d", 0o700))
		exitOnError(os.Chdir("d"))
	}
	return hang("")
}
