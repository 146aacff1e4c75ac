package recall

import "time"

const (
	// fresh is how long an answer is used without asking again. The image-resolver
	// looks at tags every few minutes, so this is little in comparison.
	fresh = 10 * time.Second
	// inUse is how long an answer is used while a new one is asked for in the
	// background: what is in steady use waits for nobody. Who needs one that was not
	// used for longer waits for the new answer, since much may have changed meanwhile.
	inUse = time.Minute
	// usable is how long an answer is used if the other service cannot be reached: pods
	// that run do not depend on it.
	usable = time.Hour
)

// answer is what the other service said.
type answer[V any] struct {
	said V
	size int
	at   time.Time
	// missedAt is when it last had nothing to say to the same question.
	missedAt time.Time
}

// due says whether it is time to ask again: once in a while, also if nobody answers.
func (a answer[V]) due(now time.Time) bool {
	return now.Sub(a.at) >= fresh && now.Sub(a.missedAt) >= fresh
}

// away says whether it has been no use of late to wait for a new answer.
func (a answer[V]) away(now time.Time) bool { return now.Sub(a.missedAt) < inUse }

// usable says whether the answer may be used while there is no new one.
func (a answer[V]) usable(now time.Time) bool { return now.Sub(a.at) < usable }

// atOnce says whether the answer is used without waiting for a new one.
func (a answer[V]) atOnce(now time.Time) bool {
	return now.Sub(a.at) < inUse || a.away(now) && a.usable(now)
}

// remember keeps an answer. One that is larger than all together may be is not kept.
// m is locked.
func (m *Memory[K, V]) remember(key K, said V) {
	m.forget(key)
	now := time.Now()
	a := answer[V]{said: said, size: max(1, m.cfg.Size(said)), at: now}
	if a.size > m.cfg.MaxSize {
		return
	}
	if m.size+a.size > m.cfg.MaxSize {
		m.makeRoom(now, a.size)
	}
	m.known[key] = a
	m.size += a.size
}

// note notes that the other service had nothing to say of key. m is locked.
func (m *Memory[K, V]) note(key K) {
	if known, ok := m.known[key]; ok {
		known.missedAt = time.Now()
		m.known[key] = known
	}
}

// makeRoom forgets what is not fresh, or everything if that is not enough for an answer
// of that size: asking again costs little. m is locked.
func (m *Memory[K, V]) makeRoom(now time.Time, size int) {
	for key, a := range m.known {
		if now.Sub(a.at) >= fresh {
			m.forget(key)
		}
	}
	if m.size+size > m.cfg.MaxSize {
		clear(m.known)
		m.size = 0
	}
}

// forget forgets what was said of key. m is locked.
func (m *Memory[K, V]) forget(key K) {
	m.size -= m.known[key].size
	delete(m.known, key)
}
