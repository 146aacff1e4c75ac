// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
)

// Parts of the error detail with which a server tells clients that an error is marked by [Elsewhere].
const (
	elsewhereReason = "ASK_ANOTHER_REPLICA"
	elsewhereDomain = "functionrunner.podmanager"
	elsewhereOwner  = "owner"
)

// elsewhere is an error that concerns only one replica and not the requested image.
type elsewhere struct {
	error
	owner string // the replica to use, as host:port; empty means any other replica
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

// OwnedBy marks an error as [Elsewhere] does, and adds the address of the replica that owns the image, as host:port.
func OwnedBy(owner string, err error) error { return elsewhere{err, owner} }

// OwnerOf returns the address that [OwnedBy] added to an error. It returns an empty string if there is none.
func OwnerOf(err error) string {
	if e, ok := errors.AsType[elsewhere](err); ok {
		return e.owner
	}
	return ""
}

// IsElsewhere reports whether [Elsewhere] or [OwnedBy] marked err, in this process or in the server, so that callers
// should try another replica.
func IsElsewhere(err error) bool {
	_, ok := errors.AsType[elsewhere](err)
	return ok
}

// elsewhereInWire reports whether the server marked an error that a client received, and returns the owner in the
// error.
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
