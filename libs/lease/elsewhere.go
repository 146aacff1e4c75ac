package lease

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
)

// The detail by which an error that [Elsewhere] marked is known over the wire.
const (
	elsewhereReason = "ASK_ANOTHER_REPLICA"
	elsewhereDomain = "functionrunner.podmanager"
)

// elsewhere is an error that says nothing about what was asked for.
type elsewhere struct{ error }

func (e elsewhere) Unwrap() error { return e.error }

// Detail implements rpcfault.Detailer.
func (elsewhere) Detail() proto.Message {
	return &errdetails.ErrorInfo{Reason: elsewhereReason, Domain: elsewhereDomain}
}

// Elsewhere marks an error of a replica that says nothing about the image that was
// asked for: the replica is shutting down, or does not know the cluster yet. Another
// replica may well grant the lease.
func Elsewhere(err error) error { return elsewhere{err} }

// IsElsewhere says whether another replica may be asked: err was marked by
// [Elsewhere], there or here.
func IsElsewhere(err error) bool {
	_, ok := errors.AsType[elsewhere](err)
	return ok
}

// elsewhereInWire says whether an error that a client got was marked.
func elsewhereInWire(err error) bool {
	cerr, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return false
	}
	for _, d := range cerr.Details() {
		msg, err := d.Value()
		if info, ok := msg.(*errdetails.ErrorInfo); ok && err == nil && info.GetReason() == elsewhereReason && info.GetDomain() == elsewhereDomain {
			return true
		}
	}
	return false
}
