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

// inForceSince is since when new pods of a function have been of the version that they
// are of now, as far as is known here.
func (m *Machine) inForceSince(f Function) change {
	since, now := m.began, m.config.version(f)
	for _, past := range m.past {
		if past.config.version(f) != now {
			since = past.until
		}
	}
	return since
}
