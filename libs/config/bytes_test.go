// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/krm-function-runner/function-runner/libs/config"
)

func TestBytes(t *testing.T) {
	for text, want := range map[string]config.Bytes{
		"0": 0, "6291456": 6 << 20, "64Ki": 64 << 10, "6Mi": 6 << 20, "1Gi": 1 << 30,
		"0x600000": 6 << 20, "+1": 1, "9223372036854775807": 1<<63 - 1, "8589934591Gi": (1<<33 - 1) << 30,
	} {
		var got config.Bytes
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("Set(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "Mi", "-1", "-1Mi", "1.5Mi", "6M", "6MB", "6 Mi", "6MiMi", "9223372036854775808", "8589934592Gi",
	} {
		size := config.Bytes(7)
		if err := size.Set(text); err == nil || size != 7 {
			t.Errorf("Set(%q) = %d, %v, want an error and no effect", text, size, err)
		}
	}
}

// FuzzBytes parses arbitrary text: an accepted size is not negative, and its number of bytes is the same size.
func FuzzBytes(f *testing.F) {
	for _, text := range []string{"0", "6291456", "6Mi", "1Gi", "8589934592Gi", "-1", "Ki", "1e3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var size, again config.Bytes
		if size.Set(text) != nil {
			return
		}
		if err := again.Set(size.String()); err != nil || again != size || size < 0 {
			t.Errorf("%q is %d, whose text %q is %d, %v", text, size, size, again, err)
		}
	})
}
