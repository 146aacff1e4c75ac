// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

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
	awaitText(t, filepath.Join(proc, "oom_score_adj"), "1000") // it is set last
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

// awaitText returns once a file has this text.
func awaitText(t *testing.T, path, want string) {
	t.Helper()
	for {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(got)) == want {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("%s is %s, want %s", path, got, want)
		}
	}
}
