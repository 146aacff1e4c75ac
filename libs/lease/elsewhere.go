// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
)

// The error detail that carries the mark of [Elsewhere] over the wire.
const (
	elsewhereReason = "ASK_ANOTHER_REPLICA"
	elsewhereDomain = "functionrunner.podmanager"
)

// elsewhere is an error of one replica alone, not of the requested image.
type elsewhere struct{ error }

func (e elsewhere) Unwrap() error { return e.error }

// Detail implements rpcfault.Detailer.
func (elsewhere) Detail() proto.Message {
	return &errdetails.ErrorInfo{Reason: elsewhereReason, Domain: elsewhereDomain}
}

// Elsewhere marks an error that comes from the state of one replica and not from the requested
// image: the replica is shutting down, or does not know the cluster yet. Another replica may grant
// the lease.
func Elsewhere(err error) error { return elsewhere{err} }

// IsElsewhere reports whether to ask another replica: err was marked by [Elsewhere], in this
// process or in the server.
func IsElsewhere(err error) bool {
	_, ok := errors.AsType[elsewhere](err)
	return ok
}

// elsewhereInWire reports whether an error that a client received was marked.
func elsewhereInWire(err error) bool {
	cerr, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return false
	}
	for _, d := range cerr.Details() {
		msg, err := d.Value()
		if info, ok := msg.(*errdetails.ErrorInfo); ok && err == nil && info.GetReason() == elsewhereReason &&
			info.GetDomain() == elsewhereDomain {
			return true
		}
	}
	return false
}
