// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"
)

// Sample is the measurement of a call by a well-behaved caller.
type Sample struct {
	Start  time.Time
	Took   time.Duration
	Failed error
}

// line is the JSON encoding of a [Sample]. The process of the well-behaved callers prints a line for each call.
type line struct {
	Start  int64  `json:"start"` // nanoseconds
	Took   int64  `json:"took"`  // nanoseconds
	Failed string `json:"failed,omitempty"`
}

func (s Sample) write(w io.Writer) error {
	l := line{Start: s.Start.UnixNano(), Took: int64(s.Took)}
	if s.Failed != nil {
		l.Failed = s.Failed.Error()
	}
	return json.NewEncoder(w).Encode(l)
}

// Samples collects the measurements of all calls. Its methods may be called concurrently.
type Samples struct {
	mu  sync.Mutex
	all []Sample
}

// Read reads all calls that [Run] has written, until the end of r.
func (s *Samples) Read(r io.Reader) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue // the callers' process was stopped while it wrote this line
		}
		sample := Sample{Start: time.Unix(0, l.Start), Took: time.Duration(l.Took)}
		if l.Failed != "" {
			sample.Failed = errors.New(l.Failed)
		}
		s.mu.Lock()
		s.all = append(s.all, sample)
		s.mu.Unlock()
	}
}

// Between returns the calls that started in the interval from (inclusive) to (exclusive).
func (s *Samples) Between(from, to time.Time) []Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	var some []Sample
	for _, sample := range s.all {
		if !sample.Start.Before(from) && sample.Start.Before(to) {
			some = append(some, sample)
		}
	}
	return some
}

// Never is the duration of a call without a successful answer.
const Never = time.Duration(math.MaxInt64)

// P99 returns the 99th percentile of the calls' durations. Failed calls count as infinitely long, so that
// rejections do not look like fast answers.
func P99(samples []Sample) time.Duration {
	if len(samples) == 0 {
		return Never
	}
	times := make([]time.Duration, len(samples))
	for i, sample := range samples {
		times[i] = sample.Took
		if sample.Failed != nil {
			times[i] = Never
		}
	}
	slices.Sort(times)
	return times[(len(times)*99+99)/100-1]
}

// Failures describes the failed calls, as text to append to an error message. The text is empty if no call failed.
func Failures(samples []Sample) string {
	n, text := 0, ""
	for _, sample := range samples {
		if sample.Failed != nil {
			n, text = n+1, sample.Failed.Error()
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(": %d of %d calls failed: %.160s", n, len(samples), text)
}
