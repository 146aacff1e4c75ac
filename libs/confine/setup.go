// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"context"
	"errors"
	"time"
)

// maxReady is how many setups are kept ready: as many as are used at a time on a machine of
// usual size. To make one takes longer than all else that confines a process, on ext4 half
// a millisecond for the directory alone.
const maxReady = 4

// retryAfter is how long Run waits after a setup could not be made.
const retryAfter = time.Second

// processSetup is the temporary directory and the Landlock rules of one process.
type processSetup struct {
	temp  *TempDir // nil without
	rules ruleset
}

// Run keeps setups ready for the next processes until ctx ends.
//
// It makes them when a process has ended, or when there is none left: beside a process that
// was just started it would take one of two processors from it.
func (c *Confiner) Run(ctx context.Context) {
	for ctx.Err() == nil {
		again := c.fill(ctx)
		select {
		case <-ctx.Done():
		case <-c.refillNeeded:
		case <-again:
		}
	}
}

// fill makes setups until there are enough. After a failure it returns a channel that
// when to try again.
func (c *Confiner) fill(ctx context.Context) (again <-chan time.Time) {
	for ctx.Err() == nil && len(c.ready) < cap(c.ready) {
		next, err := c.makeSetup()
		if err != nil {
			c.cfg.Log.Warn("cannot prepare the next function process", "error", err, "retry_in", retryAfter)
			return time.After(retryAfter)
		}
		c.ready <- next // which only fill does
	}
	return nil
}

// refill makes Run prepare setups.
func (c *Confiner) refill() {
	select {
	case c.refillNeeded <- struct{}{}:
	default:
	}
}

// takeSetup returns one that is ready, or makes one.
func (c *Confiner) takeSetup() (processSetup, error) {
	select {
	case ready := <-c.ready:
		if len(c.ready) == 0 {
			c.refill()
		}
		return ready, nil
	default:
		return c.makeSetup()
	}
}

func (c *Confiner) makeSetup() (processSetup, error) {
	temp, err := c.temp.make()
	if err != nil {
		return processSetup{rules: noRules}, err
	}
	rules, err := c.rules(temp)
	if err != nil {
		return processSetup{rules: noRules}, errors.Join(err, temp.Remove())
	}
	return processSetup{temp, rules}, nil
}

// release frees a setup that is not used.
func (s processSetup) release() error {
	s.rules.close()
	return s.temp.Remove()
}

// releaseReady frees the setups that are ready.
func (c *Confiner) releaseReady() {
	for {
		select {
		case ready := <-c.ready:
			_ = ready.release()
		default:
			return
		}
	}
}
