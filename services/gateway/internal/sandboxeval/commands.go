// SPDX-License-Identifier: Apache-2.0

package sandboxeval

import (
	"path"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandbox"
)

// maxCommands is the maximum number of stored commands for an image. Most images need a single command. An image needs
// several commands only if it has several names, or if its network access changes.
const maxCommands = 8

// run contains everything that determines the command of a function: its name, its image and its network access.
type run struct {
	name     string
	resolved *imageresolverv1.ResolveImageResponse
	network  bool
}

// startsLike reports whether both runs need the same command. It compares the contents of the image-resolver's answers,
// because each evaluation may get a separate answer object.
func (r run) startsLike(other run) bool {
	a, b := r.resolved, other.resolved
	return r.name == other.name && r.network == other.network &&
		(a == b || (a.GetDigest() == b.GetDigest() && a.GetWorkingDir() == b.GetWorkingDir() &&
			a.GetUser() == b.GetUser() && slices.Equal(a.GetCommand(), b.GetCommand()) &&
			slices.Equal(a.GetEnv(), b.GetEnv())))
}

// sandboxFunction returns the function in the form that a launcher needs. It searches for the function's program in the
// directory root, which contains the image's files.
func (r run) sandboxFunction(root string) (sandbox.Function, *fnproc.StartError) {
	dir, command := path.Join("/", r.resolved.GetWorkingDir()), r.resolved.GetCommand()
	program, err := sandbox.FindProgram(root, command[0], dir, r.resolved.GetEnv())
	return sandbox.Function{
		Name: r.name, Root: root, Program: slices.Concat([]string{program}, command[1:]), Env: r.resolved.GetEnv(),
		Dir: dir, User: r.resolved.GetUser(), Network: r.network,
	}, err
}

// command is a stored command, with the run for which it was created.
type command struct {
	run
	fnproc.Command
}

// commandFor returns the command that starts the function of the run r. If no such command is stored, it creates a
// command with the function start. This may take longer than running the function. For example, a command of crun or
// runc contains 40 KB of JSON. Stored commands stay valid, because the files of an image do not change.
func (i *openImage) commandFor(
	r run, start func(sandbox.Function) (fnproc.Command, *fnproc.StartError),
) (fnproc.Command, *fnproc.StartError) {
	if made, ok := i.storedCommand(r); ok {
		return made, nil
	}
	fn, err := r.sandboxFunction(i.root)
	if err != nil {
		return fnproc.Command{}, err
	}
	made, err := start(fn)
	if err != nil {
		return fnproc.Command{}, err
	}
	i.keeper.mu.Lock()
	defer i.keeper.mu.Unlock()
	if len(i.commands) == maxCommands {
		i.commands = slices.Delete(i.commands, 0, 1) // oldest command
	}
	i.commands = append(i.commands, command{r, made})
	return made, nil
}

func (i *openImage) storedCommand(r run) (fnproc.Command, bool) {
	i.keeper.mu.Lock()
	defer i.keeper.mu.Unlock()
	at := slices.IndexFunc(i.commands, func(c command) bool { return c.startsLike(r) })
	if at < 0 {
		return fnproc.Command{}, false
	}
	return i.commands[at].Command, true
}
