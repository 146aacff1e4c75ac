package images

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
)

const (
	// patience is how long a usable answer is held back for a new one.
	patience = 3 * time.Second
	// renewalTimeout bounds a renewal: as long as the image-resolver may take to ask a
	// registry, and so short that nobody comes to wait for one that is silent while its
	// function is in use.
	renewalTimeout = 30 * time.Second
	// maxRenewals bounds how many answers are renewed at a time. The others are used as
	// they are, and are renewed when they are asked for next.
	maxRenewals = 256
)

// renewal is one question in the background, however many wait for its answer.
type renewal struct {
	cancel context.CancelFunc

	// done closes when image and err are set.
	done  chan struct{}
	image *imageresolverv1.ResolveImageResponse
	err   error
}

// renew returns the renewal of an answer that is under way, a new one if there is none,
// and nil if there may be no more. It keeps the trace of ctx, and not its end: others
// want the answer too. m is locked.
func (m *Memory) renew(ctx context.Context, asked request) *renewal {
	if r, ok := m.renewals[asked]; ok {
		return r
	}
	if m.stopped || len(m.renewals) >= maxRenewals {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewalTimeout)
	r := &renewal{cancel: cancel, done: make(chan struct{})}
	m.renewals[asked] = r
	m.running.Go(func() {
		defer cancel()
		image, err := m.resolver.ResolveImage(ctx, asked.message())
		if err == nil {
			r.image = image
		}
		r.err = err
		m.settle(asked, r)
		close(r.done)
	})
	return r
}

// settle notes what a renewal brought. What the image-resolver says of an image counts,
// also if it is bad: the old answer is used no more.
func (m *Memory) settle(asked request, r *renewal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.renewals, asked)
	switch {
	case r.err == nil:
		m.remember(asked, r.image)
	case noWord(r.err):
		m.note(asked)
	default:
		delete(m.known, asked)
	}
}

// missed notes that the resolver had nothing to say.
func (m *Memory) missed(asked request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(asked)
}

// note is missed for whoever has locked m.
func (m *Memory) note(asked request) {
	if known, ok := m.known[asked]; ok {
		known.missedAt = time.Now()
		m.known[asked] = known
	}
}

// wait waits for the answer, no longer than ctx and patience last.
func (r *renewal) wait(ctx context.Context) (*imageresolverv1.ResolveImageResponse, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.image, r.err
	case <-timer.C:
		return nil, fault.New(fault.Unavailable, "no answer from the image-resolver within %v", patience)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noWord says whether err says nothing of the image: nobody was reached, or had the time.
func noWord(err error) bool {
	switch fault.Of(err) {
	case fault.Unavailable, fault.Exhausted, fault.DeadlineExceeded, fault.Canceled:
		return true
	default:
		return false
	}
}

// Run waits for ctx to end, then ends what goes on in the background.
func (m *Memory) Run(ctx context.Context) error {
	<-ctx.Done()
	m.mu.Lock()
	m.stopped = true
	for _, r := range m.renewals {
		r.cancel()
	}
	m.mu.Unlock()
	m.running.Wait()
	return nil
}
