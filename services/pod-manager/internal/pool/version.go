package pool

import "time"

// version is what a pod was made from: pods of another one are to be replaced.
type version struct{ template, settings string }

// version is what a pod says about itself. One that an earlier version of this program
// made says nothing of settings: it is of other settings than all that come now.
func (p *pod) version() version { return version{p.seen.TemplateVersion, p.seen.SettingsVersion} }

// change is a point in a machine's history: an event, and its time.
type change struct {
	event uint64
	at    time.Time
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
// older is what was there before this replica's version came. Whatever else there is was
// made by somebody who knows a version that is not known here, and is as good as a pod of
// this one's.
func (m *Machine) outdated(p *pod) bool {
	since := p.pool.since
	switch {
	case !m.otherVersion(p):
		return false
	case p.knownEvent <= since.event:
		return true
	case p.seen.Created.After(since.at):
		return false
	default:
		return p.known.Sub(p.seen.Created) >= p.pool.limits.ReadyTimeout || m.now.Sub(p.known) >= peace
	}
}

// renew takes over the settings of a pool and the version of its new pods.
func (m *Machine) renew(p *pool, former Config) {
	was := version{former.Template, p.limits.Settings}
	p.limits = m.config.limits(p.function)
	if former.Template != "" && was != (version{m.config.Template, p.limits.Settings}) {
		p.since = change{m.events, m.now}
	}
}
