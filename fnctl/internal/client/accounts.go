// SPDX-License-Identifier: Apache-2.0

package client

import (
	"maps"
	"regexp"

	"connectrpc.com/connect"
)

// account is a template for the error text of a failed call, with the problem and the advice. Placeholders such as
// {image} are replaced by values of the call.
type account struct{ problem, advice string }

// accounts contains the templates of error texts by gRPC code. All other gRPC codes use otherAccount.
var accounts = map[connect.Code]account{
	connect.CodeNotFound: {
		"no evaluator of the gateway serves function {image}",
		"check the image's name and tag, map it in the exec evaluator's config, or enable the pod evaluator",
	},
	connect.CodeResourceExhausted: {"{image} was not run: {message}", "the gateway is busy: try again{retry}"},
	connect.CodeDeadlineExceeded: {
		"function {image} did not answer in time",
		"raise --timeout: the first call of a function that runs in a pod has to wait for the pod",
	},
	connect.CodeFailedPrecondition: {"cannot run {image}: {message}", ""},
	connect.CodeInvalidArgument:    {"the gateway rejected the call of function {image}: {message}", ""},
	connect.CodeUnauthenticated: {
		"the gateway does not know who calls ({message})",
		"call the port of the gateway that needs no client certificate",
	},
	connect.CodeUnavailable: {"{image} was not run: {message}", "try again{retry}"},
	connect.CodeUnimplemented: {
		"what answers at {address} is no function runner ({message})",
		"check --address or FNCTL_ADDRESS",
	},
}

// localAccounts returns the templates of error texts for --local. Some errors need other advice than at a gateway.
func localAccounts() map[connect.Code]account {
	texts := maps.Clone(accounts)
	texts[connect.CodeDeadlineExceeded] = account{
		"function {image} did not answer in time",
		"raise --timeout: the first call of a function has to wait for its image",
	}
	texts[connect.CodeInvalidArgument] = account{"the call of function {image} is not valid: {message}", ""}
	return texts
}

// tooLarge matches error messages about a ResourceList over the size limit, from servers and from local programs.
var tooLarge = regexp.MustCompile(`message size|larger than|too large|MaxBytes`)

// sizeAccount and localSizeAccount are the error texts for a ResourceList over the size limit, at a gateway and
// with --local.
var (
	sizeAccount = account{
		"the package is too large for {image}: {size} bytes ({message})",
		"raise --max-message-size, now {limit}, here and --max-request-body-size at the gateway",
	}
	localSizeAccount = account{
		"the package is too large for {image}: {size} bytes ({message})", "raise --max-message-size, now {limit}",
	}
)

var unreachable = account{
	"the gateway at {address} cannot be reached ({message})",
	"start it, or give its address with --address or FNCTL_ADDRESS",
}

// timedOut is the error text for a timeout. It is used if the gateway's {message} explains the function's wait.
var timedOut = account{
	"function {image} did not answer in time ({message})",
	"if what it waits for takes longer, raise --timeout",
}

// otherAccount is the error text for all gRPC codes without an entry in accounts.
var otherAccount = account{
	"function {image} could not be evaluated ({code}: {message})",
	"check the gateway at {address} and its log",
}
