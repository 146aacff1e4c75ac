// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"
	"slices"

	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/issuer"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
)

// callers are the programs that lease pods.
type callers struct {
	// address is where they call this replica, empty for a manager that is called in its process.
	address string
	// ids are patterns of their IDs, none for this program alone.
	ids []string
	// refused has why this program gets no certificate, if it issues one for itself.
	refused <-chan error
}

// heldID is the ID of a program that manages pods and calls them.
const heldID = "spiffe://function-runner/function-runner"

// hold gives a program without a certificate one of its own, by an authority that its replicas share: a Secret in
// the namespace of function pods, where the Role of Porch's main branch permits one. The certificate is for calls of
// function pods alone. Refused has why there is none.
func (c *Config) hold(frame *program.Frame) (component serve.Component, refused <-chan error, err error) {
	if c.Issuer.Secret == "" || !c.PodTLS || frame.Identity != nil {
		return serve.Component{}, nil, nil
	}
	log := frame.Telemetry.Log
	client, err := kubeclient.Connect(c.Kubeconfig, kubeclient.NewClock(log), log)
	if err != nil {
		return serve.Component{}, nil, err
	}
	identity, err := mtls.Hold(log, frame.Telemetry.Meters)
	if err != nil {
		return serve.Component{}, nil, err
	}
	reasons := make(chan error, 1)
	i, err := c.holdingIssuer(client, identity, reasons, *frame)
	if err != nil {
		return serve.Component{}, nil, err
	}
	frame.Identity = identity
	frame.Health.Explain(func() []string { return slices.Concat(identity.Details(), i.Details()) })
	return serve.Component{Tasks: []serve.Task{identity.Run, i.Run}}, reasons, nil
}

// holdingIssuer returns the issuer of an identity.
func (c *Config) holdingIssuer(
	client kubernetes.Interface, identity *mtls.Identity, refused chan<- error, frame program.Frame,
) (*issuer.Issuer, error) {
	config := c.Issuer.config(client.CoreV1().Secrets(c.Namespace), frame)
	id, err := mtls.ParseID(heldID)
	if err != nil {
		return nil, err
	}
	config.Create = true
	config.Held = &issuer.Held{ID: id, Use: identity.Replace, Refused: func(_ context.Context, why error) {
		select {
		case refused <- why:
		default: // an earlier reason is not read yet
		}
	}}
	return issuer.New(config)
}
