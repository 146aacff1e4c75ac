// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
)

// Reason, domain and metadata key of the ErrorInfo detail by which a server marks an error as [Elsewhere].
const (
	elsewhereReason = "ASK_ANOTHER_REPLICA"
	elsewhereDomain = "functionrunner.podmanager"
	elsewhereOwner  = "owner"
)

// elsewhere is an error of a single replica of the pod-manager. Another replica may grant the lease.
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

// Elsewhere marks an error as caused by the state of a single replica, and not by the requested image: the replica
// is shutting down, or is not synchronized with the cluster yet. Clients then retry at another replica.
func Elsewhere(err error) error { return elsewhere{error: err} }

// OwnedBy marks an error like [Elsewhere], and adds the address (host:port) of the replica that owns the image.
// Clients call this replica next.
func OwnedBy(owner string, err error) error { return elsewhere{err, owner} }

// OwnerOf returns the address that [OwnedBy] added to an error, or an empty string if there is no address.
func OwnerOf(err error) string {
	if e, ok := errors.AsType[elsewhere](err); ok {
		return e.owner
	}
	return ""
}

// IsElsewhere reports whether err is marked by [Elsewhere] or [OwnedBy], in this process or in the server. If so,
// callers should try another replica.
func IsElsewhere(err error) bool {
	_, ok := errors.AsType[elsewhere](err)
	return ok
}

// elsewhereInWire reports whether the server marked the error of an RPC by [Elsewhere] or [OwnedBy]. It also
// returns the address that OwnedBy added.
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

// unansweredError is the error of a call that got no answer from the replica, not even a rejection.
type unansweredError struct{ error }

func (u unansweredError) Unwrap() error { return u.error }

// IsUnanswered reports whether a [Client] could not reach its replica, or lost the connection to it. Other errors
// that [IsElsewhere] recognizes were sent by the replica, which is therefore alive.
func IsUnanswered(err error) bool {
	_, ok := errors.AsType[unansweredError](err)
	return ok
}
