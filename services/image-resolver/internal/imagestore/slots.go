// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"strings"
	"sync"
)

// How many images a process pulls at a time: each takes space that is not counted before it is in the store. A registry
// that is slow has only a part of the slots.
const (
	maxPulls            = 4
	maxPullsPerRegistry = 2
)

// slots are the rights to pull.
type slots struct {
	all chan struct{}

	mu         sync.Mutex
	registries map[string]*registrySlots // those with pulls
}

type registrySlots struct {
	slots chan struct{}
	users int // with a slot, or waiting for one
}

func newSlots() *slots {
	return &slots{all: make(chan struct{}, maxPulls), registries: map[string]*registrySlots{}}
}

// take waits for a slot to pull from a repository, which the caller releases. A pull that waits for others from its own
// registry keeps none from other registries.
func (s *slots) take(ctx context.Context, repository string) (release func(), err error) {
	registry, _, _ := strings.Cut(repository, "/")
	own := s.enter(registry)
	if err := send(ctx, own.slots); err != nil {
		s.leave(registry)
		return nil, err
	}
	if err := send(ctx, s.all); err != nil {
		<-own.slots
		s.leave(registry)
		return nil, err
	}
	return func() {
		<-s.all
		<-own.slots
		s.leave(registry)
	}, nil
}

func send(ctx context.Context, slots chan<- struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter returns the slots of a registry that is in use.
func (s *slots) enter(registry string) *registrySlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, ok := s.registries[registry]
	if !ok {
		own = &registrySlots{slots: make(chan struct{}, maxPullsPerRegistry)}
		s.registries[registry] = own
	}
	own.users++
	return own
}

// leave forgets a registry that is not in use any more, since callers choose registries.
func (s *slots) leave(registry string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.registries[registry]
	if own.users--; own.users == 0 {
		delete(s.registries, registry)
	}
}
