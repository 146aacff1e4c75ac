// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
)

// Reason, domain and metadata key of the ErrorInfo detail in errors of the pod-manager's replicas. This detail makes
// clients call another replica.
const (
	elsewhereReason = "ASK_ANOTHER_REPLICA"
	elsewhereDomain = "functionrunner.podmanager"
	elsewhereOwner  = "owner"
)

// elsewhere wraps an error of a pod-manager's replica to tell clients that another replica may grant the lease.
type elsewhere struct {
	error
	owner string // replica to use, as host:port; empty means any other replica
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

// Elsewhere marks an error so that clients retry the call at another replica. Use it if this replica is shutting down
// or not yet synchronized with the cluster, but not for problems of the image.
func Elsewhere(err error) error { return elsewhere{error: err} }

// OwnedBy marks an error so that clients retry the call at owner, the host:port of the replica that manages the
// pods of the image.
func OwnedBy(owner string, err error) error { return elsewhere{err, owner} }

// OwnerOf returns the address that [OwnedBy] added to err, or an empty string.
func OwnerOf(err error) string {
	if e, ok := errors.AsType[elsewhere](err); ok {
		return e.owner
	}
	return ""
}

// IsElsewhere reports whether callers should retry the call at another replica. It recognizes errors that this process
// or the server marked with [Elsewhere] or [OwnedBy].
func IsElsewhere(err error) bool {
	_, ok := errors.AsType[elsewhere](err)
	return ok
}

// elsewhereInWire reports whether the server marked an RPC error with [Elsewhere] or [OwnedBy]. The result owner is the
// address that OwnedBy added, or empty.
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

// unansweredError is the error of a call that the replica did not answer at all, not even with an error.
type unansweredError struct{ error }

func (u unansweredError) Unwrap() error { return u.error }

// IsUnanswered reports whether err means that a [Client] could not reach its replica or lost the connection. All other
// errors marked with [Elsewhere] were sent by the replica, which is therefore alive.
func IsUnanswered(err error) bool {
	_, ok := errors.AsType[unansweredError](err)
	return ok
}
