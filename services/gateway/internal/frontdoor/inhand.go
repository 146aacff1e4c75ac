package frontdoor

import (
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// tryAgain is the retry hint for callers that were refused: requests come and go.
const tryAgain = time.Second

// inHand bounds the bytes of requests that are held at a time, from the first that is
// read until the response is written. Requests that wait are bounded in number by those
// whom they wait for; memory only runs out by their size.
type inHand struct {
	limit int64

	mu   sync.Mutex
	held int64
}

// now returns how many bytes are held.
func (i *inHand) now() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.held
}

// share is what one request holds. It belongs to one goroutine; a nil share is without
// bounds.
type share struct {
	of   *inHand
	held int64
}

// grow has the request hold that many bytes, unless it holds more. It returns an error
// of class fault.Exhausted if that is more than is left, except if the request is the
// only one: it would be refused for ever.
func (s *share) grow(to int64) error {
	if s == nil || to <= s.held {
		return nil
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	others := s.of.held - s.held
	if others > 0 && others+to > s.of.limit {
		return fault.WithRetryAfter(fault.New(fault.Exhausted,
			"requests of %d bytes are being evaluated or wait for it, and the gateway holds up to %d: try again later, run more gateways, or give them more memory and raise the limit",
			others, s.of.limit), tryAgain)
	}
	s.of.held += to - s.held
	s.held = to
	return nil
}

// release gives back what the request holds.
func (s *share) release() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.held -= s.held
	s.held = 0
}
