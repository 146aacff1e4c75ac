package gateway

import (
	"fmt"
	"net/http"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/program"
)

// Connect returns clients of the services that cfg names. The caller closes them.
func Connect(cfg Config, frame program.Frame) (Services, error) {
	if cfg.ImageResolver == "" {
		return Services{}, nil
	}
	tracing, err := frame.Telemetry.Interceptor()
	if err != nil {
		return Services{}, fmt.Errorf("set up tracing of calls to other services: %w", err)
	}
	// HTTP/2 with TLS for https addresses and without for http, one connection for
	// all calls.
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	client := &http.Client{Transport: transport}
	return Services{
		transport:     transport,
		ImageResolver: imageresolverv1connect.NewImageResolverServiceClient(client, cfg.ImageResolver, connect.WithGRPC(), connect.WithInterceptors(tracing)),
	}, nil
}
