// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// started runs tasks until the test ends.
func started(t *testing.T) *tasks {
	t.Helper()
	queue := newTasks()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); queue.run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return queue
}

func TestTasksOfOnePodRunInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := started(t)
		var mu sync.Mutex
		done := map[string][]int{}
		for i := range 20 {
			for _, id := range []string{"a", "b"} {
				add := queue.add
				if i%3 == 0 {
					add = queue.addLater // an urgent task does not overtake the background task before it
				}
				add(id, func(context.Context) {
					<-time.After(time.Duration(20-i) * time.Millisecond) // the later, the faster
					mu.Lock()
					defer mu.Unlock()
					done[id] = append(done[id], i)
				})
			}
		}
		<-time.After(time.Second)
		synctest.Wait()
		for _, id := range []string{"a", "b"} {
			if len(done[id]) != 20 || !slices.IsSorted(done[id]) {
				t.Errorf("done for %s: %v", id, done[id])
			}
		}
		if len(queue.lines) != 0 {
			t.Errorf("%d ids are kept although nothing is to be done", len(queue.lines))
		}
	})
}

func TestTasksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := started(t)
		var mu sync.Mutex
		running, most, done := 0, 0, 0
		for i := range 3 * parallel {
			queue.add(strconv.Itoa(i), func(context.Context) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				<-time.After(time.Second)
				mu.Lock()
				defer mu.Unlock()
				running--
				done++
			})
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if most != parallel || done != 3*parallel {
			t.Errorf("%d ran at a time, want %d; %d are done", most, parallel, done)
		}
	})
}

// TestTasksEnd has tasks that wait and tasks that run when the program ends.
func TestTasksEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newTasks()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); queue.run(ctx) }()
		for i := range 3 * parallel {
			queue.add(strconv.Itoa(i%parallel), func(ctx context.Context) { <-ctx.Done() })
		}
		synctest.Wait()
		cancel()
		<-ended // or the bubble finds a deadlock
	})
}

// TestUrgentTasksComeFirst has thousands of extensions wait when a pod is created.
func TestUrgentTasksComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := started(t)
		most, running := 0, 0
		var mu sync.Mutex
		for i := range 3000 {
			queue.addLater(strconv.Itoa(i), func(ctx context.Context) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
				mu.Lock()
				running--
				mu.Unlock()
			})
		}
		synctest.Wait()
		begin := time.Now()
		created, second := make(chan struct{}), make(chan struct{})
		queue.add("new", func(context.Context) { close(created) })
		queue.add("2999", func(context.Context) { close(second) }) // behind its extension
		<-created
		if took := time.Since(begin); took > 0 {
			t.Errorf("a creation waited %s behind extensions", took)
		}
		<-second
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("a deletion waited %s behind extensions of other pods", took)
		}
		mu.Lock()
		defer mu.Unlock()
		if most > parallelLater+1 {
			t.Errorf("%d extensions run at a time, want %d, and the one before the deletion", most, parallelLater)
		}
	})
}
