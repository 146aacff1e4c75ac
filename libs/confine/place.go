// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"errors"
	"time"
)

// maxReady is how many places are kept ready: as many as are used at a time on a machine of
// usual size. To make one takes longer than all else that confines a process, on ext4 half
// a millisecond for the directory alone.
const maxReady = 4

// retryAfter is how long Run waits after a place could not be made.
const retryAfter = time.Second

// place is what each process has of its own.
type place struct {
	temp  *TempDir // nil without
	rules ruleset
}

// Run keeps places ready for the next processes until ctx ends.
//
// It makes them when a process has ended, or when there is none left: beside a process that
// was just started it would take one of two processors from it.
func (c *Confiner) Run(ctx context.Context) {
	for ctx.Err() == nil {
		again := c.fill(ctx)
		select {
		case <-ctx.Done():
		case <-c.fewer:
		case <-again:
		}
	}
}

// fill makes places until there are enough. After a failure it returns a channel that tells
// when to try again.
func (c *Confiner) fill(ctx context.Context) (again <-chan time.Time) {
	for ctx.Err() == nil && len(c.ready) < cap(c.ready) {
		next, err := c.makePlace()
		if err != nil {
			c.cfg.Log.Warn("cannot prepare the next function process", "error", err, "retry_in", retryAfter)
			return time.After(retryAfter)
		}
		c.ready <- next // which only fill does
	}
	return nil
}

// refill has Run make places.
func (c *Confiner) refill() {
	select {
	case c.fewer <- struct{}{}:
	default:
	}
}

// place returns one that is ready, or makes one.
func (c *Confiner) place() (place, error) {
	select {
	case ready := <-c.ready:
		if len(c.ready) == 0 {
			c.refill()
		}
		return ready, nil
	default:
		return c.makePlace()
	}
}

func (c *Confiner) makePlace() (place, error) {
	temp, err := c.temp.make()
	if err != nil {
		return place{rules: noRules}, err
	}
	rules, err := c.rules(temp)
	if err != nil {
		return place{rules: noRules}, errors.Join(err, temp.Remove())
	}
	return place{temp, rules}, nil
}

// discard frees a place that is not used.
func (p place) discard() error {
	p.rules.close()
	return p.temp.Remove()
}

// discardReady frees the places that are ready.
func (c *Confiner) discardReady() {
	for {
		select {
		case ready := <-c.ready:
			_ = ready.discard()
		default:
			return
		}
	}
}
