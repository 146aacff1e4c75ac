// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// Why function-runner does not have a service's setting, and what to set instead.
const (
	inProcess   = "the services are in one process here: remove it"
	onePort     = "only the gateway has a port here: set --port or FNR_GATEWAY_ADDRESS"
	imagePrefix = "all services have the same: set --default-image-prefix or FNR_GATEWAY_DEFAULT_IMAGE_PREFIX"
	messageSize = "all services have the same: set --max-request-body-size or FNR_GATEWAY_MAX_MESSAGE_BYTES"
	longestTime = "all services have the same: set FNR_GATEWAY_MAX_EVALUATION_TIME"
	registries  = "it is the image-resolver's: set --enable-private-registries or " +
		"FNR_IMAGE_RESOLVER_ENABLE_PRIVATE_REGISTRIES"
	confinement = "all services have the same: set the variable without the service's name in it"
	credentials = "it is the image-resolver's: set --registry-auth-secret-path or FNR_IMAGE_RESOLVER_AUTH_SECRET_PATH"
)

// overruled are the settings of services that have no effect here.
var overruled = map[string]string{
	"Gateway.ImageResolver":    inProcess,
	"Gateway.PodManager":       inProcess,
	"PodManager.ImageResolver": inProcess,

	"Gateway.ImageResolverID":    inProcess,
	"Gateway.PodManagerID":       inProcess,
	"PodManager.ImageResolverID": inProcess,
	"PodManager.Callers":         inProcess,
	"ImageResolver.Callers":      inProcess,

	"PodManager.Issuer.Certificates": inProcess,
	"PodManager.Issuer.Own":          inProcess,

	"Gateway.Confine":            confinement,
	"Gateway.MaxTempBytes":       confinement,
	"Gateway.MaxTempFiles":       confinement,
	"Gateway.FunctionNetwork":    confinement,
	"PodManager.Confine":         confinement,
	"PodManager.FunctionNetwork": confinement,

	"ImageResolver.Address": onePort,
	"PodManager.Address":    onePort,

	"ImageResolver.DefaultImagePrefix":   imagePrefix,
	"PodManager.DefaultImagePrefix":      imagePrefix,
	"PodManager.MaxMessageBytes":         messageSize,
	"PodManager.MaxEvaluationTime":       longestTime,
	"PodManager.EnablePrivateRegistries": registries,
	"PodManager.AuthSecretPath":          credentials,
}

// rejectOverruled returns an error that names the variables of overruled settings, if any is set: without
// it, a user would expect an effect.
func rejectOverruled() error {
	var problems []error
	for _, field := range slices.Sorted(maps.Keys(overruled)) {
		if config.IsSet(field) {
			problems = append(problems, fmt.Errorf("environment: %s has no effect in function-runner: %s",
				config.Variable(field), overruled[field]))
		}
	}
	return errors.Join(problems...)
}
