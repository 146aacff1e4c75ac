// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"time"

	"github.com/docker/cli/cli/config/types"
	"github.com/docker/docker-credential-helpers/client"
	helpers "github.com/docker/docker-credential-helpers/credentials"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

const (
	// helperTimeout bounds one run of a credential helper.
	helperTimeout = 10 * time.Second
	// helperGrace is how long a killed helper's children may hold its output.
	helperGrace = time.Second
	// tokenUser is the user name by which a helper marks an identity token.
	tokenUser = "<token>"
)

// runHelper asks docker-credential-NAME for the credentials of server. They are
// empty if it has none. Errors are of class fault.Precondition, or fault.Unavailable
// if there was no answer within limit: the caller's own time is not over then. They
// hold nothing that the helper wrote to its standard output, nor what looks secret of
// what it wrote to its standard error.
func runHelper(ctx context.Context, limit time.Duration, name, server string) (types.AuthConfig, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p := &process{ctx: limited, program: "docker-credential-" + name}
	creds, err := client.Get(func(args ...string) client.Program { p.args = args; return p }, server)
	switch {
	case helpers.IsErrCredentialsNotFound(err):
		return types.AuthConfig{}, nil
	case ctx.Err() != nil:
		return types.AuthConfig{}, fmt.Errorf("credential helper %s for %s did not answer: %w", p.program, server, ctx.Err())
	case limited.Err() != nil:
		return types.AuthConfig{}, fault.New(fault.Unavailable, "credential helper %s for %s did not answer within %v: "+
			"check that it can reach what it asks, and that it waits for no input", p.program, server, limit)
	case p.err != nil:
		return types.AuthConfig{}, fault.New(fault.Precondition, "credential helper %s for %s failed: %w%s%s",
			p.program, server, p.err, p.stderrText(), adviceOnHelper(p.err))
	case err != nil: // the text of err may quote what should be secret
		return types.AuthConfig{}, badAnswer(p.program, server, "that is not valid JSON")
	case creds.Secret == "":
		return types.AuthConfig{}, badAnswer(p.program, server, "without a secret")
	case creds.Username == tokenUser:
		return types.AuthConfig{IdentityToken: creds.Secret}, nil
	}
	return types.AuthConfig{Username: creds.Username, Password: creds.Secret}, nil
}

// badAnswer is the error for an answer that has no credentials.
func badAnswer(program, server, what string) error {
	return fault.New(fault.Precondition, "credential helper %s for %s gave an answer %s: run it by hand, as docker does",
		program, server, what)
}

// adviceOnHelper returns what to do about a helper that could not be run.
func adviceOnHelper(err error) string {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return ": add it to the image of this service, or take it out of the docker configuration"
	}
	return ""
}
