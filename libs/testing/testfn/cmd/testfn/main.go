// SPDX-License-Identifier: Apache-2.0

// Command testfn is a KRM function for tests. Its first argument selects its behaviour, such as a success, a failure
// or a hang. Without arguments, its file name selects the behaviour. Some behaviours expect a value after an equals
// sign, as in "sleep=50ms". Behaviours that exit by themselves read their input first, unless their comment says
// otherwise. Behaviours that hang exit after ten minutes, so that a broken test does not leave processes for ever.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// usageStatus is the exit code of testfn if the requested behaviour does not exist or cannot be performed.
const usageStatus = 64

// behaviour performs a behaviour of testfn and returns the exit code. For "sleep=50ms", value is "50ms".
type behaviour func(value string) int

var behaviours = map[string]behaviour{
	// Functions with the same reply for all inputs.
	"empty":         reply("", "", 0),                                       // exits 0 without output
	"warn":          reply(results, "one resource is invalid\n", 0),         // exits 0 with a result of severity error
	"exit1":         reply(results, "failed: one resource is invalid\n", 1), // fails with results and a log
	"exit1-silent":  func(string) int { return 1 },                          // fails without reading or writing anything
	"exit1-garbage": reply("kind: [", "failed halfway\n", 1),                // fails with output that cannot be parsed
	"garbage":       reply("kind: [", "all is well\n", 0),                   // exits 0 with output that cannot be parsed
	"bad-utf8":      reply("", "broken: \xff\xfe\xc3(\n", 1),                // fails with a log that is not UTF-8

	// Functions that exit by themselves.
	"echo":         echo,           // writes its input
	"env":          env,            // writes its environment as results
	"help":         help,           // shows its help on VALUE (stdout or stderr) if called with --help, else echoes
	"ignore-stdin": ignoreStdin,    // exits 0 without reading its input
	"allocate":     allocateMemory, // uses VALUE bytes of memory, then echoes
	"sleep":        sleep,          // waits for the duration VALUE, then echoes
	"greet":        greet,          // logs VALUE bytes before it reads its input, then echoes
	"leave":        leaveFiles,     // exits 0 after the duration VALUE without reading or writing anything
	"signal":       die,            // dies by signal number VALUE, or by SIGKILL

	// Functions that must be stopped.
	"hang":           hang,          // neither reads nor writes
	"keep":           keepFiles,     // uses VALUE bytes of memory, and hangs
	"ignore-sigterm": ignoreSigterm, // hangs, and survives SIGTERM
	"flood-stdout":   floodStdout,   // writes VALUE bytes, or endlessly
	"flood-stderr":   floodStderr,   // logs VALUE bytes, or endlessly
	"flood-both":     floodBoth,     // writes and logs endlessly

	// Hostile functions.
	"try":  tryAttempt,      // tries the action VALUE of attempts, and writes the result
	"fill": fillDisk,        // writes VALUE files of 1 MiB to its temporary directory, and hangs
	"nest": nestDirectories, // makes VALUE nested temporary directories, and hangs

	// Functions that leave processes behind.
	"hang-with-child":   hangWithChild, // logs, starts a child that hangs, and hangs
	"hold":              hold,          // exits with half of the list written; its child writes the rest after VALUE
	"hold-detach":       holdDetach,
	"hold-rest":         holdRest,
	"orphan":            makeOrphan,      // echoes; its child continues to hang
	"daemon":            startDaemons,    // echoes; VALUE processes (default 1) in separate sessions continue to hang
	"hang-with-orphan":  hangWithOrphan,  // hangs; an orphan in its session and another group also hangs
	"detach-in-session": detachInSession, // starts a hanging process in another group
	"leave-group":       leaveGroup,      // hangs with a child; first tries to join its parent's process group
	"detach":            detachChild,     // starts a hanging process in another session
}

func main() {
	name := filepath.Base(os.Args[0])
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	name, value, _ := strings.Cut(name, "=")
	behave, ok := behaviours[name]
	if !ok {
		known := slices.Sorted(maps.Keys(behaviours))
		fmt.Fprintf(os.Stderr, "testfn: no behaviour %q; there are %s\n", name, strings.Join(known, ", "))
		os.Exit(usageStatus)
	}
	if size := os.Getenv("TESTFN_GREETING"); size != "" {
		// This simulates a process that logs before its first request. Servers must kill it if it logs more than 64 KiB.
		floodOutput(os.Stderr, size)
	}
	os.Exit(behave(value))
}

// exitOnError exits if err is not nil. Use it only for errors that no test expects.
func exitOnError(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "testfn:", err)
		os.Exit(usageStatus)
	}
}
