// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Cluster says where kubectl goes, with its flags; empty for what kubectl uses then.
type Cluster struct{ Namespace, Context, Kubeconfig string }

// args are the arguments of a call of kubectl.
func (c Cluster) args(rest ...string) []string {
	var args []string
	for flag, value := range map[string]string{
		"context": c.Context, "kubeconfig": c.Kubeconfig, "namespace": c.Namespace,
	} {
		if value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	return append(args, rest...)
}

// withAdvice adds to the error of a program that cannot be started what to do about it.
func withAdvice(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: install kubectl, or leave --namespace out and give the gateway's address with --address", err)
	}
	return err
}

// maxOutput bounds what a call of kubectl prints, in bytes.
const maxOutput = 1 << 20

// output returns what a call of kubectl prints.
func (c Cluster) output(ctx context.Context, rest ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", c.args(rest...)...)
	cmd.WaitDelay = killDelay
	printed, said := &bounded{limit: maxOutput}, new(problems)
	cmd.Stdout, cmd.Stderr = printed, said
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); exited && ctx.Err() == nil {
		return "", fmt.Errorf("kubectl %s ended: %s", rest[0], said)
	}
	if err != nil {
		return "", withAdvice(errors.Join(context.Cause(ctx), err))
	}
	return strings.TrimSpace(string(printed.text)), nil
}

// bounded keeps what is written up to a limit, and fails beyond.
type bounded struct {
	text  []byte
	limit int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > b.limit {
		return 0, errors.New("kubectl prints too much")
	}
	b.text = append(b.text, p...)
	return len(p), nil
}

// InCluster reports whether the place of authorities is an object of a cluster, as kubectl names it.
func InCluster(place string) bool {
	return strings.HasPrefix(place, "secret/") || strings.HasPrefix(place, "configmap/")
}

// Authorities returns the entry ca.crt of a Secret or ConfigMap, named as secret/NAME or configmap/NAME.
func (c Cluster) Authorities(ctx context.Context, object string) ([]byte, error) {
	content, err := c.output(ctx, "get", object, `--output=jsonpath={.data.ca\.crt}`)
	if err == nil && content == "" {
		err = errors.New("it has no ca.crt")
	}
	if err != nil {
		return nil, fmt.Errorf("read the authorities in %s: %w", object, err)
	}
	if !strings.HasPrefix(object, "secret/") {
		return []byte(content), nil
	}
	decoded, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return nil, fmt.Errorf("read the authorities in %s: %w", object, err)
	}
	return decoded, nil
}
