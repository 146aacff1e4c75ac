//go:build e2e

package faults_test

import (
	"context"
	"sync"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// meeting is where systems of one cluster wait for each other before something is done
// to all of them. Nothing may be going on in one then that would not bear it.
type meeting struct {
	mu      sync.Mutex
	members int
	events  map[string]*event
}

// event is something that is done once.
type event struct {
	arrived int
	do      func() error
	done    chan struct{} // closed afterwards
	err     error
}

// join makes a test a member until it ends. All have to join before the first one waits.
func (m *meeting) join(t *testing.T) {
	m.add(1)
	t.Cleanup(func() { m.add(-1) })
}

// add changes the number of members. Those who leave are waited for no longer.
func (m *meeting) add(members int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members += members
	for _, e := range m.events {
		m.doIfAllArrived(e)
	}
}

// doIfAllArrived does what is waited for. It is called with the lock.
func (m *meeting) doIfAllArrived(e *event) {
	select {
	case <-e.done:
		return
	default:
	}
	if e.arrived >= m.members {
		e.err = e.do()
		close(e.done)
	}
}

// together does something of a name, once, as soon as each member has come so far.
func (m *meeting) together(t *testing.T, name string, do func() error) {
	t.Helper()
	ctx := suite.Context(t)
	e := m.arrive(name, do)
	select {
	case <-e.done:
		if e.err != nil {
			t.Fatalf("%s: %v", name, e.err)
		}
	case <-ctx.Done():
		t.Fatalf("%s: the other systems have not come so far: %v", name, context.Cause(ctx))
	}
}

// nothing is done where systems only wait for each other.
func nothing() error { return nil }

func (m *meeting) arrive(name string, do func() error) *event {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events[name]
	if e == nil {
		e = &event{do: do, done: make(chan struct{})}
		m.events[name] = e
	}
	e.arrived++
	m.doIfAllArrived(e)
	return e
}
