// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in bytes, as a setting or a flag. Users may write it as a number, or as a number with Ki, Mi or Gi.
type Bytes int64

// Set stores the size in text, such as 6Mi.
func (b *Bytes) Set(text string) error {
	number, unit := text, int64(1)
	for i, suffix := range []string{"Ki", "Mi", "Gi"} {
		if before, ok := strings.CutSuffix(text, suffix); ok {
			number, unit = before, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(number, 0, 64) // as flags of Go and Porch, which accept 0x600000 too
	switch {
	case errors.Is(err, strconv.ErrRange), n > math.MaxInt64/unit:
		return errors.New("it is too large")
	case err != nil, n < 0:
		return errors.New("it must be a number of bytes, or a size such as 6Mi")
	}
	*b = Bytes(n * unit)
	return nil
}

// String returns the size as a number of bytes, which every version of our programs can read.
func (b Bytes) String() string { return strconv.FormatInt(int64(b), 10) }

// Type returns the name of the type for help texts.
func (Bytes) Type() string { return "bytes" }
