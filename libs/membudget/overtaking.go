// SPDX-License-Identifier: Apache-2.0

package membudget

// overtaking is one look at the queue: which requests wait, and whether more may overtake
// them. Its zero value is the head of the queue.
type overtaking struct {
	memory []*queued            // wait for memory: all that are admitted overtake them
	peers  map[string][]*queued // wait for others of their peer to be read
	all    bool                 // no request may overtake
	shut   map[string]bool      // no request of these peers may
}

// closed reports whether no request of a peer may overtake the queued requests.
func (o *overtaking) closed(peer string) bool { return o.all || o.shut[peer] }

// wait adds a request that waits: for memory if it is readable, otherwise for its peer.
func (o *overtaking) wait(q *queued, readable bool, limit int64) {
	if readable {
		o.memory = append(o.memory, q)
		o.all = o.all || q.overtaken >= limit
		return
	}
	if o.peers == nil {
		o.peers, o.shut = make(map[string][]*queued), make(map[string]bool)
	}
	o.peers[q.from.peer] = append(o.peers[q.from.peer], q)
	if q.overtaken >= limit/connDivisor {
		o.shut[q.from.peer] = true
	}
}

// admit counts q for the requests that it overtakes. It may exceed their bound by one
// request.
func (o *overtaking) admit(q *queued) {
	for _, w := range o.memory {
		w.overtaken += q.size
	}
	for _, w := range o.peers[q.from.peer] {
		w.overtaken += q.size
	}
}

// tally adds up bytes by address.
type tally map[string]int64

// add changes the sum of an address. Sums of zero are not kept.
func (t *tally) add(address string, size int64) {
	if *t == nil {
		*t = make(tally)
	}
	if (*t)[address] += size; (*t)[address] == 0 {
		delete(*t, address)
	}
}

// usage adds up bytes by the connection and by the peer that they are of.
type usage struct{ conns, peers tally }

func (u *usage) add(from source, size int64) {
	u.conns.add(from.conn, size)
	u.peers.add(from.peer, size)
}
