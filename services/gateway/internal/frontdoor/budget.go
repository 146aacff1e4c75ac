package frontdoor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// tryAgain is the retry hint for callers that were refused: requests come and go.
const tryAgain = time.Second

// inHand bounds the bytes that are held at a time: of requests, from the first that is
// read until the response is written, and of outputs. Evaluations that wait are bounded in
// number by those whom they wait for; memory only runs out by their size.
//
// Requests that find no room wait for it, first come first served, before they are read.
// One that is larger than the limit gets its turn too, and goes alone.
type inHand struct {
	limit    int64
	patience time.Duration // how long a request may wait

	mu      sync.Mutex
	held    int64
	waiting []*arrival
}

// arrival is a request that waits for room.
type arrival struct {
	size     int64
	admitted chan struct{} // closed when it has its room
}

// now returns how many bytes are held.
func (i *inHand) now() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.held
}

// fits says whether there is room for size more bytes. The caller holds mu.
func (i *inHand) fits(size int64) bool { return i.held == 0 || i.held+size <= i.limit }

// arrive takes room for a request, or has it wait: the arrival is nil if it does not have
// to. Those that wait have no room yet, but the network's buffers have parts of them:
// together they are bounded too.
func (i *inHand) arrive(size int64) (*arrival, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.waiting) == 0 && i.fits(size) {
		i.held += size
		return nil, nil
	}
	sum := size
	for _, other := range i.waiting {
		sum += other.size
	}
	if len(i.waiting) > 0 && sum > i.limit {
		return nil, i.full()
	}
	a := &arrival{size: size, admitted: make(chan struct{})}
	i.waiting = append(i.waiting, a)
	return a, nil
}

// admit lets in who waits, as long as there is room. The caller holds mu.
func (i *inHand) admit() {
	for len(i.waiting) > 0 && i.fits(i.waiting[0].size) {
		first := i.waiting[0]
		i.waiting = i.waiting[1:]
		i.held += first.size
		close(first.admitted)
	}
}

// full is the error for a request that there is no room for. The caller holds mu.
func (i *inHand) full() error {
	return fault.WithRetryAfter(fault.New(fault.Exhausted,
		"requests of %d bytes are being evaluated or wait for it, and the gateway holds up to %d: try again later, run more gateways, or give them more memory",
		i.held, i.limit), tryAgain)
}

// share is what one request holds. It belongs to one goroutine; a nil share is without
// bounds.
type share struct {
	of   *inHand
	held int64
}

// reserve has a request that holds nothing yet hold that many bytes, as soon as there is
// room. It returns an error of class fault.Exhausted if there is none for too long, and one
// of ctx's class if that ends before. Who holds something must not wait for more: two of
// them would wait for each other.
func (s *share) reserve(ctx context.Context, size int64) error {
	if size <= 0 {
		return nil
	}
	a, err := s.of.arrive(size)
	if err == nil && a != nil {
		err = s.of.await(ctx, a)
	}
	if err != nil {
		return err
	}
	s.held = size
	return nil
}

// await returns when a has its room, or an error when its patience or ctx ends before.
func (i *inHand) await(ctx context.Context, a *arrival) error {
	patience := time.NewTimer(i.patience)
	defer patience.Stop()
	select {
	case <-a.admitted:
	case <-patience.C:
	case <-ctx.Done():
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.waiting, a)
	if at < 0 {
		return nil // it has its room, be it in the last moment
	}
	i.waiting = slices.Delete(i.waiting, at, at+1)
	i.admit() // who came later may be smaller
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Of(err), "the request waited for room in the gateway's memory: %w", context.Cause(ctx))
	}
	return i.full()
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
	if others := s.of.held - s.held; others > 0 && others+to > s.of.limit {
		return s.of.full()
	}
	s.of.held += to - s.held
	s.held = to
	return nil
}

// add has the request hold so many more bytes, which are there already: those of its
// output. Others wait for them.
func (s *share) add(size int64) {
	if s == nil {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.held += size
	s.held += size
}

// release gives back what the request holds.
func (s *share) release() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.held -= s.held
	s.held = 0
	s.of.admit()
}
