package registry

import (
	"context"
	"strconv"
	"sync"
	"testing"
)

func TestRegistriesAreForgotten(t *testing.T) {
	turns := newTurns(8)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var taking sync.WaitGroup
	for i := range 1000 {
		taking.Go(func() {
			host := strconv.Itoa(i % 100)
			if release, err := turns.take(t.Context(), host); err == nil {
				release()
			}
			if release, err := turns.take(over, host); err == nil {
				release()
			}
		})
	}
	taking.Wait()
	if len(turns.registries) != 0 {
		t.Errorf("%d registries are remembered after the last turn, want none: callers choose them", len(turns.registries))
	}
}
