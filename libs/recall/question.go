package recall

import (
	"context"
	"time"

	"github.com/krm-function-runner/function-runner/libs/deadline"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// patience is how long a usable answer is held back for a new one.
	patience = 3 * time.Second
	// renewalTimeout bounds a renewal: as long as the other service may take to ask a
	// registry, and so short that nobody comes to wait for one that is silent while
	// its answer is in use.
	renewalTimeout = 30 * time.Second
	// maxQuestions is how many questions there may be for another to be asked in the
	// background. Answers are used as they are meanwhile, and renewed when they are
	// next asked for.
	maxQuestions = 256
)

// errLeft is how a question ends whose asker has left.
var errLeft = fault.New(fault.Canceled, "whoever asked has left")

// question is one question to the other service, however many wait for its answer.
type question[V any] struct {
	// cancel ends a question that is asked in the background.
	cancel context.CancelFunc

	// done closes when said and err are set.
	done chan struct{}
	said V
	err  error
}

// join returns the question about key that is being asked, or a new one for the caller
// to put.
func (m *Memory[K, V]) join(key K) (q *question[V], mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q, ok := m.questions[key]; ok {
		return q, false
	}
	return m.newQuestion(key, func() {}), true
}

// renew returns the question about key that is being asked, one in the background if
// there is none, and nil if there may be no more. It keeps the trace of ctx, and not
// its end: others want the answer too. m is locked.
func (m *Memory[K, V]) renew(ctx context.Context, key K) *question[V] {
	if q, ok := m.questions[key]; ok {
		return q
	}
	if m.stopped || len(m.questions) >= maxQuestions {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewalTimeout)
	q := m.newQuestion(key, cancel)
	m.running.Go(func() {
		defer cancel()
		_, _ = m.put(ctx, key, q) // q has what it brings
	})
	return q
}

// newQuestion notes that key is being asked about. m is locked.
func (m *Memory[K, V]) newQuestion(key K, cancel context.CancelFunc) *question[V] {
	q := &question[V]{cancel: cancel, done: make(chan struct{})}
	m.questions[key] = q
	return q
}

// put puts q to the other service, and has everybody know the answer, but for what is
// only about the time of whoever asked.
func (m *Memory[K, V]) put(ctx context.Context, key K, q *question[V]) (V, error) {
	defer close(q.done)
	defer m.settle(key, q)
	q.err = errLeft // should Ask panic
	said, err := m.cfg.Ask(ctx, key)
	if err == nil || !timeIsOver(ctx, err) {
		q.said, q.err = said, err
	}
	return said, err
}

// timeIsOver says whether err is the answer to somebody who waits no longer, or not much
// longer: then the other service says what it knows so far, which is no word for those
// with more time.
func timeIsOver(ctx context.Context, err error) bool {
	if class := fault.Of(err); class == fault.DeadlineExceeded || class == fault.Canceled || ctx.Err() != nil {
		return true
	}
	return noWord(err) && deadline.Near(ctx)
}

// settle notes what a question brought. What the other service says counts, also if it
// is bad: the old answer is used no more.
func (m *Memory[K, V]) settle(key K, q *question[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.questions, key)
	switch {
	case q.err == nil:
		m.remember(key, q.said)
	case noWord(q.err):
		m.note(key)
	default:
		m.forget(key)
	}
}

// missed notes that the other service had nothing to say.
func (m *Memory[K, V]) missed(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(key)
}

// wait waits for the answer, no longer than ctx lasts.
func (q *question[V]) wait(ctx context.Context) (none V, err error) {
	select {
	case <-q.done:
		return q.said, q.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
