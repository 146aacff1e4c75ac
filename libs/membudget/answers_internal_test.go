// SPDX-License-Identifier: Apache-2.0

package membudget

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// TestUnreadAnswersLeaveMemory has answers of 60 bytes that are not read, all at once.
func TestUnreadAnswersLeaveMemory(t *testing.T) {
	for name, tc := range greedyClients {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := &Budget{limit: 1000, timeout: 10 * time.Second}
				for i := range 12 {
					go unread(t, all, tc.from(i), 60)
				}
				<-time.After(10 * answerTimeout)
				if got := all.Reserved(); got != tc.want {
					t.Errorf("%d bytes are reserved, want %d: %s", got, tc.want, tc.reason)
				}
				begin := time.Now()
				for range 2 {
					r := &Reservation{budget: all, from: other}
					if err := r.acquire(t.Context(), 100); err != nil {
						t.Error(err)
					}
					r.received(100)
					if err := r.Answer(t.Context(), 100); err != nil {
						t.Error(err)
					}
					defer r.release()
				}
				if waited := time.Since(begin); waited > 0 {
					t.Errorf("another client waits for %v", waited)
				}
				<-time.After(time.Hour)
				synctest.Wait()
				if all.Reserved() != 200 || len(all.answers) != 0 || len(all.writing.conns)+len(all.writing.peers) != 2 {
					t.Errorf("afterwards %d bytes are reserved, and %v written, of which two answers of 100",
						all.Reserved(), all.writing)
				}
			})
		})
	}
}

// unread has a request evaluated whose answer is not read for a minute. If there is no
// memory for it, it is rejected in time and with a hint.
func unread(t *testing.T, b *Budget, from source, size int64) {
	r := &Reservation{budget: b, from: from}
	defer r.release()
	if err := r.acquire(t.Context(), 1); err != nil {
		t.Error(err)
	}
	r.received(1)
	begin := time.Now()
	err := r.Answer(t.Context(), size)
	if waited := time.Since(begin); err != nil && waited != answerTimeout || waited > answerTimeout {
		t.Errorf("an answer waits for %v, want %v", waited, answerTimeout)
	}
	if _, hint := fault.RetryAfter(err); err != nil && (fault.Of(err) != fault.Exhausted || !hint) {
		t.Errorf("%v of class %v, hint %v", err, fault.Of(err), hint)
	}
	if err == nil {
		<-time.After(time.Minute)
	}
}

// TestAClientThatReadsGetsAllAnswers has one connection with many more answers than may be
// written at a time, and with large ones among them, while it sends all the time.
func TestAClientThatReadsGetsAllAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := peers(1)[0]
		all := &Budget{limit: 1000, timeout: 10 * time.Second}
		for i := range 200 {
			size := int64(100)
			if i%20 == 0 {
				size = 400
			}
			go func() {
				r := &Reservation{budget: all, from: from}
				defer r.release()
				if err := r.acquire(t.Context(), 50); err != nil {
					t.Error(err)
				}
				<-time.After(10 * time.Millisecond)
				r.received(50)
				if err := r.Answer(t.Context(), size); err != nil {
					t.Errorf("answer %d: %v", i, err)
				}
				<-time.After(20 * time.Millisecond)
			}()
			<-time.After(12 * time.Millisecond)
		}
		<-time.After(time.Minute)
		if got := all.Reserved(); got != 0 {
			t.Errorf("%d bytes are reserved afterwards", got)
		}
	})
}

// TestACallerThatLeavesWaitsForNoAnswer has a caller leave whose answer waits.
func TestACallerThatLeavesWaitsForNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, from := &Budget{limit: 100}, peers(1)[0]
		first, second := &Reservation{budget: all, from: from}, &Reservation{budget: all, from: from}
		if err := first.Answer(t.Context(), 50); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(answerTimeout/2, cancel)
		if err := second.Answer(ctx, 50); fault.Of(err) != fault.Canceled {
			t.Errorf("%v of class %v, want Canceled", err, fault.Of(err))
		}
		second.release()
		first.release()
	})
}
