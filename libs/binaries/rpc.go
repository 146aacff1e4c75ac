// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

const (
	// MaxRequestBytes is the maximum size of a gateway's request. The request lists the binaries that the gateway cannot
	// use.
	MaxRequestBytes = 1 << 20
	// MaxResponseBytes is the maximum size of a message with binaries. A message with 5,000 images and 1,000 binaries
	// fits if image names are at most 1 KiB long and paths at most 4 KiB.
	MaxResponseBytes = 16 << 20
	// imagesPerMessage and binariesPerMessage are the maximum numbers of images and binaries in a message. Longer lists
	// are split into several messages.
	imagesPerMessage, binariesPerMessage = 5000, 1000
	// maxImages is the maximum number of images in a list. A client that receives a longer list returns an error.
	maxImages = 200_000
)

// Handler returns an RPC service that sends the binaries of source to gateways. The function stopping returns a context
// that is done when the server shuts down. Running watches then fail with errStopping, so that gateways connect to
// another replica.
func Handler(stopping func() context.Context, source Source) podmanagerv1connect.BinaryServiceHandler {
	return handler{source, stopping()}
}

var errStopping = fault.New(fault.Unavailable, "the pod-manager is shutting down: another replica has the same list")

type handler struct {
	source   Source
	stopping context.Context //nolint:containedctx // of the process
}

// WatchBinaries implements the service.
func (h handler) WatchBinaries(ctx context.Context, req *podmanagerv1.WatchBinariesRequest,
	stream *connect.ServerStream[podmanagerv1.WatchBinariesResponse],
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.stopping, func() { cancel(errStopping) })() //nolint:contextcheck // of the process
	problems := receivedProblems(req.GetProblems())
	err := h.source.Watch(ctx, func(list []Binary) Problems {
		for _, message := range splitMessages(list) {
			if err := stream.Send(message); err != nil {
				cancel(err)
				break
			}
		}
		return problems
	})
	return cmp.Or(context.Cause(ctx), err)
}

// splitMessages splits a list of binaries into messages below the size limit. It marks the last message as complete,
// so that the receiver recognizes the end of the list.
func splitMessages(list []Binary) []*podmanagerv1.WatchBinariesResponse {
	last := &podmanagerv1.WatchBinariesResponse{}
	all := []*podmanagerv1.WatchBinariesResponse{last}
	images := 0
	for _, b := range list {
		for rest := b.Images; len(rest) > 0; {
			if images == imagesPerMessage || len(last.GetBinaries()) == binariesPerMessage {
				last, images = &podmanagerv1.WatchBinariesResponse{}, 0
				all = append(all, last)
			}
			n := min(len(rest), imagesPerMessage-images)
			last.Binaries = append(last.Binaries, newMessage(b, rest[:n]))
			images, rest = images+n, rest[n:]
		}
	}
	last.Complete = true
	return all
}

func newMessage(b Binary, images []string) *podmanagerv1.Binary {
	m := &podmanagerv1.Binary{Config: b.Config, Path: b.Path, Images: images}
	if b.Prefork != nil {
		m.Prefork = new(int32(*b.Prefork)) //nolint:gosec // it is 64 at most
	}
	return m
}

// Client is a Source that receives its lists from the pod-manager over RPC.
type Client struct {
	rpc podmanagerv1connect.BinaryServiceClient
}

// NewClient returns a client of the pod-manager at url, which is http://host:port or https://host:port. The HTTP
// client must support HTTP/2. It must not have a timeout of its own, because a watch lasts indefinitely.
func NewClient(httpClient connect.HTTPClient, url string, options ...connect.ClientOption) *Client {
	options = append([]connect.ClientOption{connect.WithGRPC(), connect.WithReadMaxBytes(MaxResponseBytes)}, options...)
	return &Client{podmanagerv1connect.NewBinaryServiceClient(httpClient, url, options...)}
}

// Watch implements Source.
func (c *Client) Watch(ctx context.Context, use func([]Binary) Problems) error {
	for problems := Problems(nil); ; {
		changed, err := c.watchOnce(ctx, problems, use)
		if err != nil {
			return err
		}
		problems = changed
	}
}

// watchOnce reports problems with binaries to the pod-manager, and passes each received list to the callback use. If
// the problems that use returns differ from the reported problems, watchOnce returns them. The caller must then report
// them in a new request.
func (c *Client) watchOnce(ctx context.Context, problems Problems, use func([]Binary) Problems) (Problems, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := &podmanagerv1.WatchBinariesRequest{}
	if problems != nil {
		req.Problems = &podmanagerv1.BinaryProblems{ByConfig: problems}
	}
	stream, err := c.rpc.WatchBinaries(ctx, req)
	if err != nil {
		return nil, rpcfault.FromConnect(err)
	}
	defer func() { cancel(); _ = stream.Close() }() // without the cancellation, Close would wait for more messages
	for {
		list, err := receiveList(stream)
		if err != nil {
			return nil, err
		}
		if now := boundProblems(use(list)); now != nil && (problems == nil || !maps.Equal(problems, now)) {
			return now, nil
		}
	}
}

// receiveList receives the next list, which may arrive in several messages. The last message is marked as complete.
func receiveList(stream *connect.ServerStreamForClient[podmanagerv1.WatchBinariesResponse]) ([]Binary, error) {
	var list []Binary
	images := 0
	for stream.Receive() {
		for _, b := range stream.Msg().GetBinaries() {
			images += max(1, len(b.GetImages()))
			list = append(list, receivedList(b))
		}
		if images > maxImages {
			return nil, fmt.Errorf("the pod-manager has more than %d images for local binaries: the list is not used", maxImages)
		}
		if stream.Msg().GetComplete() {
			return list, nil
		}
	}
	return nil, cmp.Or(rpcfault.FromConnect(stream.Err()), errEnded)
}

// errEnded is the error of a watch that the pod-manager closed without reporting an error.
var errEnded = fault.New(fault.Unavailable, "the pod-manager has ended the watch")

func receivedList(m *podmanagerv1.Binary) Binary {
	b := Binary{Config: m.GetConfig(), Path: m.GetPath(), Images: m.GetImages()}
	if m.Prefork != nil {
		b.Prefork = new(int(m.GetPrefork()))
	}
	return b
}

// GatewayMark is the prefix of each problem that a gateway in another process reported. The pod-manager recognizes
// such problems by this prefix in the status of a FunctionConfig.
const GatewayMark = "gateway: "

// maxProblems is the maximum number of unusable binaries that a gateway reports in a request. maxProblem is the
// maximum length of each description in bytes.
const maxProblems, maxProblem = 1000, 512

// boundProblems limits the size of a gateway's report. It returns at most maxProblems of the problems, each
// shortened to maxProblem bytes.
func boundProblems(problems Problems) Problems {
	if problems == nil {
		return nil
	}
	some := Problems{}
	for _, config := range slices.Sorted(maps.Keys(problems))[:min(len(problems), maxProblems)] {
		some[config] = excerpt.Middle(problems[config], maxProblem)
	}
	return some
}

// receivedProblems returns the problems in a gateway's message, marked with GatewayMark. It returns nil if the
// message contains no report.
func receivedProblems(m *podmanagerv1.BinaryProblems) Problems {
	if m == nil {
		return nil
	}
	problems := Problems{}
	for config, problem := range m.GetByConfig() {
		problems[config] = GatewayMark + problem
	}
	return problems
}
