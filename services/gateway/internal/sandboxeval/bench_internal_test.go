// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package sandboxeval

import (
	"log/slog"
	"testing"

	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
)

// BenchmarkCommand compares making the command of an image's function with taking it from the image that is
// kept open.
func BenchmarkCommand(b *testing.B) {
	for _, name := range []string{sandbox.Bubblewrap, sandbox.Crun} {
		launcher, err := sandbox.Find(b.Context(), sandbox.Config{
			Launcher: name, MaxMemory: 1 << 30, MaxProcesses: 100, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			b.Logf("not measured: %v", err)
			continue
		}
		image, usual := heldImage(b), runOf(func(*run) {})
		measure := func(kept bool) func(*testing.B) {
			return func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if !kept {
						image.commands = nil
					}
					if _, err := image.commandFor(usual, launcher.Command); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		b.Run(name+"/made", measure(false))
		b.Run(name+"/kept", measure(true))
		if err := launcher.Close(); err != nil {
			b.Error(err)
		}
	}
}
