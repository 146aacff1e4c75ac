package registrytags

import (
	"sync"
	"time"
)

const (
	// freshFor is how long an answer is used without asking again. The resolver looks
	// at tags every few minutes, so this is little in comparison.
	freshFor = 10 * time.Second
	// usableFor is how long an answer is used if the resolver cannot be reached: pods
	// that run do not depend on it.
	usableFor = time.Hour
	// maxSize bounds the sum of the answers' sizes.
	maxSize = 200_000
)

// state says what is to be done with an answer.
type state int

const (
	// unknown is an answer that was never given, or too long ago.
	unknown state = iota
	// stale is one to be asked for again, by the caller that is told so.
	stale
	// fresh is one to be used as it is.
	fresh
)

// answer is what the resolver said of a repository.
type answer struct {
	tags []string
	at   time.Time
	// asked is when somebody last set out to ask for a newer one.
	asked time.Time
}

// size is what an answer counts: its tags, and the name of the repository.
func (a *answer) size() int { return 1 + len(a.tags) }

// memory is the last answers, by repository.
type memory struct {
	mu      sync.Mutex
	answers map[string]*answer
	size    int
}

// recall returns the last answer for a repository, if there is one. A stale one is
// called stale once in a while, so that one caller asks for a newer one and the others
// need not wait; that holds as well while the resolver cannot be reached.
func (m *memory) recall(repository string) ([]string, state) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	a, ok := m.answers[repository]
	switch {
	case !ok || now.Sub(a.at) >= usableFor:
		return nil, unknown
	case now.Sub(a.asked) < freshFor:
		return a.tags, fresh
	}
	a.asked = now
	return a.tags, stale
}

// doubt has the next caller ask again.
func (m *memory) doubt(repository string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := m.answers[repository]; ok {
		a.asked = time.Time{}
	}
}

// remember keeps an answer. One that is larger than all together may be is not kept.
func (m *memory) remember(repository string, tags []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(repository)
	now := time.Now()
	a := &answer{tags: tags, at: now, asked: now}
	if a.size() > maxSize {
		return
	}
	m.makeRoom(now, a.size())
	m.answers[repository] = a
	m.size += a.size()
}

// makeRoom forgets what is not fresh if an answer of that size would not fit in, or
// everything if that is not enough: asking again costs little.
func (m *memory) makeRoom(now time.Time, size int) {
	if m.size+size <= maxSize {
		return
	}
	for repository, a := range m.answers {
		if now.Sub(a.at) >= freshFor {
			m.forget(repository)
		}
	}
	if m.size+size > maxSize {
		clear(m.answers)
		m.size = 0
	}
}

func (m *memory) forget(repository string) {
	if a, ok := m.answers[repository]; ok {
		delete(m.answers, repository)
		m.size -= a.size()
	}
}
