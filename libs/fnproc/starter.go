// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"errors"
	"sync"

	"github.com/krm-function-runner/function-runner/libs/thread"
)

// Starter starts launchers on a thread that ends with the program, and only then: the kernel ends a launcher with the
// thread that started it, however the program ends. Go ends other threads at any time.
type Starter struct {
	starts chan func()
	closed chan struct{}
	ended  sync.WaitGroup
}

// NewStarter returns a starter, which has to be closed.
func NewStarter() *Starter {
	s := &Starter{starts: make(chan func()), closed: make(chan struct{})}
	s.ended.Go(func() { thread.Own(s.serve) })
	return s
}

// serve starts launchers until the starter is closed.
func (s *Starter) serve() {
	for {
		select {
		case start := <-s.starts:
			start()
		case <-s.closed:
			return
		}
	}
}

// Close ends the thread, and the launchers that it started.
func (s *Starter) Close() {
	close(s.closed)
	s.ended.Wait()
}

// run calls start on the thread; a nil Starter calls it on any one.
func (s *Starter) run(start func()) error {
	if s == nil {
		start()
		return nil
	}
	done := make(chan struct{})
	select {
	case s.starts <- func() { defer close(done); start() }:
		<-done
		return nil
	case <-s.closed:
		return errors.New("sandboxes are started no more")
	}
}
