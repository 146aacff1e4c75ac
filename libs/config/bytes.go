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
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return errors.New("it must be a number of bytes, or a size such as 6Mi")
	}
	*b = Bytes(int64(n) * unit)
	return nil
}

// String returns the size as a number of bytes, which every version of our programs can read.
func (b Bytes) String() string { return strconv.FormatInt(int64(b), 10) }

// Type returns the name of the type for help texts.
func (Bytes) Type() string { return "bytes" }
