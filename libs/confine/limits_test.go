// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/confine"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// TestLimits looks at a function that runs, from outside.
func TestLimits(t *testing.T) {
	runner, end := start(t, config(t))
	defer end()
	cmd := command(t, "hang")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _, _ = runner.Run(ctx, cmd, nil) })
	defer running.Wait()
	defer stop()
	dir := filepath.Dir(cmd.Path)
	testfn.AwaitRunning(t, dir, 1)
	proc := filepath.Join("/proc", strconv.Itoa(testfn.Running(dir)[0]))
	await.Equal(t, "the score, which is set last,", func() string {
		score, err := os.ReadFile(filepath.Join(proc, "oom_score_adj"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(score))
	}, "1000")
	limits, err := os.ReadFile(filepath.Join(proc, "limits"))
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Join(strings.Fields(string(limits)), " ")
	for _, want := range []string{
		"Max core file size 1 1 ", "Max open files 4096 4096 ",
		"Max file size " + strconv.Itoa(maxTempBytes) + " " + strconv.Itoa(maxTempBytes) + " ",
	} {
		if !strings.Contains(have, want) {
			t.Errorf("the limits are %s, want %s", have, want)
		}
	}
}

// TestMemoryFromBeforeTheLimitIsAnError has a program that allocates memory before its limits are set.
func TestMemoryFromBeforeTheLimitIsAnError(t *testing.T) {
	const used, more = 64 << 20, 1 << 30
	fn := command(t, "keep="+strconv.Itoa(used))
	cmd := exec.Command(fn.Path, fn.Args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	await.Equal(t, "all of it is in memory", func() bool {
		statm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "statm"))
		if err != nil {
			t.Fatal(err)
		}
		pages, _ := strconv.Atoi(strings.Fields(string(statm))[1])
		return pages*os.Getpagesize() >= used
	}, true)
	if err := (confine.Limits{DataBytes: more}).Set(cmd.Process.Pid, 0, 0); err != nil {
		t.Errorf("a limit above its memory: %v", err)
	}
	err := confine.Limits{DataBytes: used / 2}.Set(cmd.Process.Pid, 0, 0)
	if err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("a limit below its memory: got %v", err)
	}
}
