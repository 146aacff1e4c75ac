// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/test/attack/internal/system"
	"github.com/krm-function-runner/function-runner/test/internal/sandbox"
)

// secret is a text in a caller's resource list that functions of other callers must not find. The list's function
// runs for two seconds, so that the attacker can search the memory for that long.
const secret = "secret-of-another-caller"

var secretList = append(List("wait", "2s", 0), "# "+secret+"\n"...)

// maxTempBytes is the default of FNR_MAX_TEMP_BYTES, the limit in bytes for a function's temporary files. The function
// must be killed before it has written 1.25 times this limit; see docs/security.md.
const maxTempBytes = 256 << 20

// Attacks in which functions try to access resources that they must not reach.
var (
	lookAround       = confinementAttack("look at the server", "look", "")
	stealMemory      = confinementAttack("read other memory", "steal", secret)
	readToken        = confinementAttack("read the token", "read", sandbox.Token)
	readDockerConfig = inRunner("read docker's config", "read", dockerConfig)
	readFunction     = inRunner("read another function", "read", anotherFunction)
	fillTemporary    = confinementAttack("fill /tmp", "fill", strconv.Itoa(maxTempBytes+maxTempBytes/4))
	stopServer       = confinementAttack("stop the server", "signal", "")
	limitServer      = confinementAttack("limit the server", "limit", "")
)

func dockerConfig(*Target) string { return sandbox.DockerConfig }

func anotherFunction(t *Target) string { return t.Function(system.Steady) }

// confinement runs all attacks on the restrictions of functions, one after another. In a test with the option
// -short, it replaces the separate attacks.
var confinement = Attack{
	Name: "confinement, all of it", Short: runner,
	Run: func(ctx context.Context, t *Target) error {
		var failures []error
		for _, attack := range []Attack{
			lookAround, stealMemory, readToken, readDockerConfig, readFunction, fillTemporary,
			persist, loopback, hide, limitServer, stopServer,
		} {
			if err := attack.Run(ctx, t); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", attack.Name, err))
			}
		}
		return errors.Join(failures...)
	},
}

// confinementAttack returns an attack by a function on a resource that it must not reach. The attack returns an
// error if the function's log reports success.
func confinementAttack(name, do, arg string) Attack {
	return Attack{
		Name: name, Programs: runners,
		Run: func(ctx context.Context, t *Target) error {
			if do == "steal" {
				// Evaluate a list of another caller at the same time, so that the server's memory contains this caller's secret.
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = t.evaluate(ctx, system.Steady, secretList)
				}()
				defer func() { <-ended }()
			}
			return t.attemptBreach(ctx, List(do, arg, 0))
		},
	}
}

// inRunner returns an attack by a function on resources that only function-runner stores. Such resources are the
// credentials of registries and the programs of other functions.
func inRunner(name, do string, arg func(t *Target) string) Attack {
	return Attack{
		Name: name, Programs: runner,
		Run: func(ctx context.Context, t *Target) error { return t.attemptBreach(ctx, List(do, arg(t), 0)) },
	}
}

// attemptBreach evaluates a list with the hostile function. It returns an error if the function's log reports that
// a forbidden access succeeded.
func (t *Target) attemptBreach(ctx context.Context, list []byte) error {
	answer, err := t.evaluate(ctx, system.Hostile, list)
	return findBreaches(string(answer.GetLog()) + status.Convert(err).Message())
}

func findBreaches(log string) error {
	var failures []error
	for line := range strings.Lines(log) {
		if _, what, ok := strings.Cut(line, "breach: "); ok {
			failures = append(failures, errors.New("a function "+strings.TrimSpace(what)))
		}
	}
	return errors.Join(failures...)
}
