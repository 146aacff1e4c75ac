// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSetupsAreMadeAfterProcesses starts a process, which ends, and then as many as have setups.
func TestSetupsAreMadeAfterProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Config{TempDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx) })
		defer c.Close()
		defer running.Wait()
		defer stop()
		expect := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if len(c.ready) != want {
				t.Errorf("%d setups are ready %s, want %d", len(c.ready), when, want)
			}
		}
		expect(maxReady, "at the start")
		first := take(t, c)
		expect(maxReady-1, "beside a process")
		first.RemoveLater()
		<-time.After(removeAfter)
		expect(maxReady, "after it")
		for range maxReady {
			take(t, c)
		}
		expect(maxReady, "after all were taken")
	})
}

func take(t *testing.T, c *Confiner) *TempDir {
	t.Helper()
	taken, err := c.takeSetup()
	if err != nil {
		t.Fatal(err)
	}
	taken.rules.close()
	return taken.temp
}
