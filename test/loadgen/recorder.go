// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Lowest and highest latency (in nanoseconds) and significant digits of the histogram. They determine its size.
const (
	lowest  = int64(time.Microsecond)
	highest = int64(time.Hour)
	digits  = 3
)

// bar is a bar of a latency histogram. latency is the middle of the bar's range, count the number of evaluations.
type bar struct {
	latency time.Duration
	count   int64
}

// turn contains the measurements of a turn, a period in which only a single target is called.
type turn struct {
	bars    []bar // ascending
	failed  int64
	failure string
	took    time.Duration
	// client is the processor time of this program, the load generator. It does not include the servers' time.
	client time.Duration
}

// recorder records the evaluations during a turn, in which only a single target is called.
type recorder struct {
	took, client time.Duration // set after a turn

	mu        sync.Mutex
	latencies *hdrhistogram.Histogram
	failed    int64
	failure   error
}

func newRecorder() *recorder {
	return &recorder{latencies: hdrhistogram.New(lowest, highest, digits)}
}

// recordEvaluation records an evaluation. It does not record the latency of a failure, because fast failures would
// lower the mean.
func (r *recorder) recordEvaluation(latency time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed++
		r.failure = err
		return
	}
	_ = r.latencies.RecordValue(min(int64(latency), highest))
}

// finishTurn returns the measurements of the turn, and resets the recorder for the next turn.
func (r *recorder) finishTurn() turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := turn{failed: r.failed, took: r.took, client: r.client}
	if r.failure != nil {
		t.failure = r.failure.Error()
	}
	for _, b := range r.latencies.Distribution() {
		if b.Count > 0 {
			t.bars = append(t.bars, bar{time.Duration(b.From+b.To) / 2, b.Count})
		}
	}
	r.latencies.Reset()
	r.failed, r.failure, r.took, r.client = 0, nil, 0, 0
	return t
}
