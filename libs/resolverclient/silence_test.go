// SPDX-License-Identifier: Apache-2.0

package resolverclient_test

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/grpchealth"
	"go.opentelemetry.io/otel/metric/noop"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/resolverclient"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
)

// TestSilentImageResolverDelaysOneKey has the only replica of the image-resolver accept calls without an answer, and
// then be replaced by a replica with another address.
func TestSilentImageResolverDelaysOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const url = "http://image-resolver:9446"
		var network pipenet.Network
		r := &resolver{}
		mux := http.NewServeMux()
		mux.Handle(imageresolverv1connect.NewImageResolverServiceHandler(r))
		mux.Handle(grpchealth.NewHandler(grpchealth.NewStaticChecker()))
		silent := network.Serve(t, "10.0.0.1:9446", mux)
		network.Serve(t, "10.0.0.2:9446", mux)
		var replaced atomic.Bool
		rpc, err := rpcclient.New(url, nil, telemetry.Discard(), rpcclient.OverNetwork(network.Dial,
			func(context.Context, string) ([]string, error) {
				return []string{map[bool]string{false: "10.0.0.1", true: "10.0.0.2"}[replaced.Load()]}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer rpc.Close()
		client := resolverclient.New(imageresolverv1connect.NewImageResolverServiceClient(rpc.HTTP, url,
			append(rpc.Options, rpc.Balanced())...), rpc.Hangs, noop.NewMeterProvider())
		// resolve resolves ten images, and returns how many calls had to wait.
		resolve := func() (delayed int) {
			for i := range 10 {
				begin := time.Now()
				_, err := client.ResolveImage(t.Context(), &imageresolverv1.ResolveImageRequest{Image: "fn:v" + strconv.Itoa(i)})
				took := time.Since(begin)
				if err != nil || took > 3*time.Second {
					t.Errorf("image %d: %v after %s", i, err, took)
				}
				if took > 0 {
					delayed++
				}
			}
			return delayed
		}
		resolve()
		silent.Kill()
		time.AfterFunc(time.Second, silent.Revive)
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		asked := r.asked.Load()
		for i, ctx := range []context.Context{short, t.Context()} {
			image := "fn:v" + strconv.Itoa(i)
			if _, err := client.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: image}); err != nil {
				t.Error(err)
			}
		}
		if r.asked.Load() != asked+1 {
			t.Errorf("%d queries after the restart of the image-resolver, want that the second call waits", r.asked.Load()-asked)
		}
		<-time.After(10 * time.Second)
		silent.SetSilent(true)
		if n := resolve(); n != 1 {
			t.Errorf("%d of ten images were delayed, want that the first one finds the image-resolver silent", n)
		}
		for range 12 {
			<-time.After(10 * time.Second)
			if n := resolve(); n != 0 {
				t.Errorf("%d images were delayed although the image-resolver has not answered since", n)
			}
		}
		silent.SetSilent(false)
		<-time.After(5 * time.Second)
		asked = r.asked.Load()
		if n := resolve(); n != 0 || r.asked.Load() != asked+10 {
			t.Errorf("%d images were delayed and %d queried once it answers, want 0 and 10", n, r.asked.Load()-asked)
		}
		silent.SetSilent(true)
		resolve()
		replaced.Store(true)
		<-time.After(10 * time.Second)
		resolve()
		<-time.After(10 * time.Second)
		asked = r.asked.Load()
		if n := resolve(); n != 0 || r.asked.Load() != asked+10 {
			t.Errorf("%d images were delayed and %d queried by the new replica, want 0 and 10", n, r.asked.Load()-asked)
		}
	})
}
