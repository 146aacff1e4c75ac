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

// secret is a text in secretList, the resource list of a caller. The functions of other callers must not find it. The
// function that evaluates secretList runs for two seconds, so that attackers have time to search the memory.
const secret = "secret-of-another-caller"

var secretList = append(List("wait", "2s", 0), "# "+secret+"\n"...)

// maxTempBytes is the default limit in bytes for a function's temporary files (FNR_MAX_TEMP_BYTES). The server must
// kill a function before it has written 1.25 times this limit, see docs/security.md.
const maxTempBytes = 256 << 20

// Attacks in which a hostile function tries to reach something forbidden, such as the server's memory.
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

// confinement runs all attacks in which a function tries to break its restrictions, one after another. Only tests with
// the option -short run it, instead of the separate attacks.
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

// confinementAttack returns an attack in which a function tries to reach something forbidden. The test fails if the
// function reports success in its log.
func confinementAttack(name, do, arg string) Attack {
	return Attack{
		Name: name, Programs: runners,
		Run: func(ctx context.Context, t *Target) error {
			if do == "steal" {
				// Evaluate another caller's list at the same time, so that its secret is in the memory of the server.
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

// inRunner returns an attack in which a function tries to read a file of function-runner. The argument arg returns the
// file's path. The file contains registries' credentials or the program of another function. Function pods contain no
// such files, so the attack applies only to function-runner.
func inRunner(name, do string, arg func(t *Target) string) Attack {
	return Attack{
		Name: name, Programs: runner,
		Run: func(ctx context.Context, t *Target) error { return t.attemptBreach(ctx, List(do, arg(t), 0)) },
	}
}

// attemptBreach evaluates a list with the hostile function. It returns an error if the function's log reports that the
// function broke a restriction.
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
