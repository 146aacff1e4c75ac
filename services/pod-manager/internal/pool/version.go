package pool

import "time"

// version is what a pod was made from: pods of another one are to be replaced.
type version struct{ template, settings string }

// version is that of the new pods of a function.
func (c Config) version(f Function) version { return version{c.Template, c.Limits(f).Settings} }

// version is what a pod says about itself. One that an earlier version of this program
// made says nothing of settings: it is of other settings than all that come now.
func (p *pod) version() version { return version{p.seen.TemplateVersion, p.seen.SettingsVersion} }

// change is a point in a machine's history: an event, and its time.
type change struct {
	event uint64
	at    time.Time
}

// past is a configuration that was replaced.
type past struct {
	config Config
	until  change
}

// maxPast is how many replaced configurations are remembered.
const maxPast = 8

// remember keeps the configuration that is about to be replaced, if pods could be made
// by it.
func (m *Machine) remember() {
	if m.config.Template == "" {
		return
	}
	if m.past = append(m.past, past{m.config, change{m.events, m.now}}); len(m.past) > maxPast {
		m.began, m.past = m.past[0].until, m.past[1:]
	}
}

// history says since when new pods of a function have been of the version that they are
// of now, and whether they were of another one before, as far as is known here.
func (m *Machine) history(f Function, other version) (since change, earlier bool) {
	since = m.began
	now := m.config.version(f)
	for _, past := range m.past {
		then := past.config.version(f)
		if then != now {
			since = past.until
		}
		earlier = earlier || then == other
	}
	return since, earlier
}

// peace is how long an older pod is left alone that another replica has just made: it may
// not know yet what is in force, and if each drained what others wait for, nobody would
// get one.
const peace = time.Minute

// otherVersion says whether a pod is of another version than new ones, whose template is known.
func (m *Machine) otherVersion(p *pod) bool {
	return p.uid != "" && m.config.Template != "" && p.version() != version{m.config.Template, p.pool.limits.Settings}
}

// outdated says whether a pod is to be replaced, since it is of an older version.
//
// Versions have no order by themselves, and replicas of several may run for hours. If each
// replaced what is not of its own, callers would get one cold start after the other. So
// older is what this replica knows to be: what was there before its version came, and what
// is of a version that it had before. Whatever else there is was made by somebody who knows
// a version that is not known here, and is as good as a pod of this one's.
func (m *Machine) outdated(p *pod) bool {
	if !m.otherVersion(p) {
		return false
	}
	since, earlier := m.history(p.pool.function, p.version())
	switch {
	case p.knownEvent <= since.event:
		return true
	case !earlier && p.seen.Created.After(since.at):
		return false
	default:
		return p.known.Sub(p.seen.Created) >= p.pool.limits.ReadyTimeout || m.now.Sub(p.known) >= peace
	}
}
