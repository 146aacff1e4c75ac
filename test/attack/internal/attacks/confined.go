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

// secret is a text in the resource list of another caller. secretList is this list; its function runs for two
// seconds.
const secret = "secret-of-another-caller"

var secretList = append(List("wait", "2s", 0), "# "+secret+"\n"...)

// maxTempBytes is the default of FNR_MAX_TEMP_BYTES. A function that exceeds this limit must be killed before it has
// written a quarter more: see docs/security.md.
const maxTempBytes = 256 << 20

// Attacks in which functions access resources that they must not reach.
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

// confinement performs the attacks on a function's confinement on a single program one after another. It replaces
// these attacks in the short form.
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

// confinementAttack returns an attack in which a function accesses a resource that it must not reach. The attack
// fails if the function's log reports a breach.
func confinementAttack(name, do, arg string) Attack {
	return Attack{
		Name: name, Programs: runners,
		Run: func(ctx context.Context, t *Target) error {
			if do == "steal" {
				// The function can read another caller's memory only while another evaluation runs.
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

// inRunner returns an attack in which a function accesses a resource that exists only in function-runner: the
// credentials of registries, or another function's program.
func inRunner(name, do string, arg func(t *Target) string) Attack {
	return Attack{
		Name: name, Programs: runner,
		Run: func(ctx context.Context, t *Target) error { return t.attemptBreach(ctx, List(do, arg(t), 0)) },
	}
}

// attemptBreach evaluates a list and returns the function's breaches as an error.
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
