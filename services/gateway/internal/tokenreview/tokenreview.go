// SPDX-License-Identifier: Apache-2.0

// Package tokenreview asks the Kubernetes API whose a token is, once for many requests.
package tokenreview

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

const (
	// validFor is how long a token is accepted without another review: so long does a token stay in use
	// whose pod was deleted.
	validFor = time.Minute
	// invalidFor is how long a token that is not valid is rejected without another review.
	invalidFor = 10 * time.Second
	// outageFor is how long the API is not asked again about a token after it could not review it.
	outageFor = time.Second
	// logEvery is the time between two lines about failures of the API.
	logEvery = 10 * time.Second
	// maxReviews bounds the reviews at a time: the API has other clients. One peer has a quarter of them.
	maxReviews       = 16
	maxReviewsOfPeer = maxReviews / 4
	// reviewTimeout bounds one review.
	reviewTimeout = 5 * time.Second
	// maxTokenBytes bounds a token.
	maxTokenBytes = 12 << 10
	// maxCacheBytes bounds what is remembered of valid tokens.
	maxCacheBytes = 4 << 20
)

// Config is what a Reviewer works with.
type Config struct {
	// API is the address of the Kubernetes API, as https://host:port.
	API string
	// Directory has the token and the ca.crt of this pod's service account, which are followed.
	Directory string
	// Audiences are those of which a token has to have one.
	Audiences []string
	Telemetry *telemetry.Telemetry
}

// key is the hash of a token: tokens are not kept.
type key [sha256.Size]byte

// Reviewer knows whose tokens are.
type Reviewer struct {
	api     *api
	ask     func(ctx context.Context, token string) (caller.Identity, error)
	cache   *cache.Cache[key, caller.Identity]
	failed  *failures
	metrics metrics
	log     *slog.Logger
	lines   rate.Sometimes // of the log
	rates   rates

	mu sync.Mutex
	// peers are the tokens that are being reviewed for each peer, with the number of requests that wait for them.
	peers map[string]map[key]int
}

// New returns a Reviewer. Its Run has to run while it is used.
func New(cfg Config) (*Reviewer, error) {
	counts, err := newMetrics(cfg.Telemetry.Meters)
	if err != nil {
		return nil, err
	}
	kubernetes := &api{
		address: strings.TrimSuffix(cfg.API, "/"), directory: cfg.Directory, audiences: cfg.Audiences,
	}
	return &Reviewer{
		api: kubernetes, ask: kubernetes.ask, metrics: counts,
		log: cfg.Telemetry.Log, lines: rate.Sometimes{Interval: logEvery},
		peers: make(map[string]map[key]int), rates: rates{peers: make(map[string]*rate.Limiter)},
		failed: newFailures(), cache: cache.New(cache.Config[key, caller.Identity]{
			MaxBytes: maxCacheBytes, Size: size, MaxFetches: maxReviews, FetchTimeout: reviewTimeout,
			StaleWait: reviewTimeout,
		}),
	}, nil
}

func size(_ key, identity caller.Identity) int64 {
	bytes := 200 + len(identity.ID)
	for _, group := range identity.Groups {
		bytes += 16 + len(group)
	}
	return int64(bytes)
}

// Run ends reviews when ctx does.
func (r *Reviewer) Run(ctx context.Context) error {
	defer r.api.closeIdle()
	return r.cache.Run(ctx)
}

// Identify returns whose token it is that a peer, an address without a port, shows. The error for a token that is not
// valid has the class Denied. No error repeats the token.
func (r *Reviewer) Identify(ctx context.Context, peer, token string) (caller.Identity, error) {
	if len(token) > maxTokenBytes {
		return caller.Identity{}, fault.New(fault.Denied, "the token is too long")
	}
	hash := key(sha256.Sum256([]byte(token)))
	query := cache.Query[key, caller.Identity]{
		Key: hash,
		Lifetime: cache.Lifetime{
			TTL: validFor, Refresh: validFor / 2, Failure: outageFor, RemoteFailures: true,
		},
		Fetch: func(ctx context.Context) (caller.Identity, error) {
			if !r.rates.allow(peer) {
				return caller.Identity{}, tooMany(peer)
			}
			return r.review(ctx, hash, token)
		},
	}
	if answer, ok := r.cache.Cached(ctx, query); ok {
		return answer.Value, nil
	}
	if err := r.failed.of(hash); err != nil {
		return caller.Identity{}, err
	}
	if !r.enter(peer, hash) {
		return caller.Identity{}, tooMany(peer)
	}
	defer r.leave(peer, hash)
	answer, err := r.cache.Get(ctx, query)
	return answer.Value, err
}

// tooMany returns the error for a peer that shows more tokens than may be reviewed for it.
func tooMany(peer string) error {
	return fault.WithRetryAfter(fault.New(fault.Exhausted,
		"too many tokens of %s are being reviewed: try again later", peer), time.Second)
}

// review asks the API, and remembers why it does not accept a token. Why the API fails is for operators: the log has
// it, and callers do not.
func (r *Reviewer) review(ctx context.Context, hash key, token string) (caller.Identity, error) {
	identity, err := r.ask(ctx, token)
	switch r.metrics.count(ctx, err) {
	case failed:
		r.lines.Do(func() {
			r.log.ErrorContext(ctx, "tokens cannot be reviewed; callers with new tokens are rejected", "error", err)
		})
		err = fault.WithRetryAfter(fault.New(fault.Unavailable,
			"the gateway cannot check tokens now: try again later; the gateway's log has the cause"), outageFor)
		r.failed.remember(hash, err, outageFor)
	case invalid:
		r.failed.remember(hash, err, invalidFor)
	case abandoned:
		err = ctx.Err()
	}
	return identity, err
}

// enter reports whether a request of a peer may wait for the review of a token: a peer that sends tokens that are not
// valid must not keep others from theirs. Requests with one token wait for one review, however many they are.
func (r *Reviewer) enter(peer string, token key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	tokens := r.peers[peer]
	if tokens[token] == 0 && len(tokens) >= maxReviewsOfPeer {
		return false
	}
	if tokens == nil {
		tokens = make(map[key]int)
		r.peers[peer] = tokens
	}
	tokens[token]++
	return true
}

// leave ends what enter began.
func (r *Reviewer) leave(peer string, token key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tokens := r.peers[peer]
	if tokens[token]--; tokens[token] == 0 {
		delete(tokens, token)
	}
	if len(tokens) == 0 {
		delete(r.peers, peer)
	}
}
