// SPDX-License-Identifier: Apache-2.0

package tokenreview

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxFailures bounds the tokens whose failure is remembered. They are apart from valid ones: tokens that are invented
// must not have those forgotten.
const maxFailures = 4096

// failures are why tokens were not accepted, each for a time.
type failures struct {
	mu     sync.Mutex
	recent *simplelru.LRU[key, failure]
}

// failure is an error that counts until a time.
type failure struct {
	err   error
	until time.Time
}

func newFailures() *failures {
	recent, _ := simplelru.NewLRU[key, failure](maxFailures, nil) // the only error is a size below one
	return &failures{recent: recent}
}

// of returns why a token was not accepted, nil if that is not known or long ago.
func (f *failures) of(token key) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.recent.Get(token)
	if ok && time.Now().Before(found.until) {
		return found.err
	}
	return nil
}

// remember remembers for a time why a token is not accepted.
func (f *failures) remember(token key, err error, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent.Add(token, failure{err, time.Now().Add(d)})
}
