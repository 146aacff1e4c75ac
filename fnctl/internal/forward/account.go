// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// audience is that of tokens for gateways: the default of FNR_TOKEN_AUDIENCES.
	audience = "function-runner"
	// tokenLife is the life of a token, the shortest that Kubernetes grants, and tokenUse how long it is used.
	tokenLife = 10 * time.Minute
	tokenUse  = tokenLife / 2
)

// Account is a service account whose tokens are for gateways. kubectl requests them, with the identity of its
// kubeconfig.
type Account struct {
	cluster Cluster
	name    string
	// turn holds the last token. Who takes it out puts one back.
	turn chan token
}

// token is a token, and until when it is used.
type token struct {
	text  string
	until time.Time
}

// NewAccount returns an account, named as NAME or NAMESPACE/NAME.
func NewAccount(cluster Cluster, name string) *Account {
	if namespace, other, found := strings.Cut(name, "/"); found {
		cluster.Namespace, name = namespace, other
	}
	a := &Account{cluster: cluster, name: name, turn: make(chan token, 1)}
	a.turn <- token{}
	return a
}

// Token returns a token of the account that is valid for some minutes.
func (a *Account) Token(ctx context.Context) (string, error) {
	var current token
	select {
	case current = <-a.turn:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { a.turn <- current }()
	if time.Now().Before(current.until) {
		return current.text, nil
	}
	begin := time.Now()
	text, err := a.cluster.output(ctx, "create", "token", a.name,
		"--audience="+audience, "--duration="+tokenLife.String())
	if err == nil && (text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })) {
		err = errors.New("kubectl create token prints no token")
	}
	if err != nil {
		return "", fmt.Errorf("request a token of service account %s: %w", a.name, err)
	}
	current = token{text, begin.Add(tokenUse)}
	return text, nil
}
