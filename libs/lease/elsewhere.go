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
	elsewhereOwner  = "owner"
)

// elsewhere is an error of a single replica, not of the requested image.
type elsewhere struct {
	error
	owner string // the replica to use, as host:port; empty means any
}

func (e elsewhere) Unwrap() error { return e.error }

// Detail implements rpcfault.Detailer.
func (e elsewhere) Detail() proto.Message {
	info := &errdetails.ErrorInfo{Reason: elsewhereReason, Domain: elsewhereDomain}
	if e.owner != "" {
		info.Metadata = map[string]string{elsewhereOwner: e.owner}
	}
	return info
}

// Elsewhere marks an error that results from the state of a single replica and not from the requested image: the
// replica is shutting down, or has not synchronized with the cluster yet. Another replica may grant the lease.
func Elsewhere(err error) error { return elsewhere{error: err} }

// OwnedBy marks an error as [Elsewhere] does, and names the replica that owns the image, as
// host:port.
func OwnedBy(owner string, err error) error { return elsewhere{err, owner} }

// OwnerOf returns the replica that an error of [OwnedBy] names, or an empty text.
func OwnerOf(err error) string {
	if e, ok := errors.AsType[elsewhere](err); ok {
		return e.owner
	}
	return ""
}

// IsElsewhere reports whether to try another replica: err was marked by [Elsewhere], in this process or in the server.
func IsElsewhere(err error) bool {
	_, ok := errors.AsType[elsewhere](err)
	return ok
}

// elsewhereInWire reports whether an error that a client received was marked, and the owner that
// it names.
func elsewhereInWire(err error) (owner string, marked bool) {
	cerr, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return "", false
	}
	for _, d := range cerr.Details() {
		msg, err := d.Value()
		if info, ok := msg.(*errdetails.ErrorInfo); ok && err == nil && info.GetReason() == elsewhereReason &&
			info.GetDomain() == elsewhereDomain {
			return info.GetMetadata()[elsewhereOwner], true
		}
	}
	return "", false
}
