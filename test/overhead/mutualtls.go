// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/test/internal/packagelist"
)

// mutualTLSLimit is the maximum factor by which mutual TLS may increase the median latency.
const mutualTLSLimit = 1.05

// SPIFFE IDs of gateways and of the pod, and the secret with which the pod proves its identity to gateways.
const (
	gatewayID = "spiffe://function-runner/gateway"
	podID     = "spiffe://function-runner/function-pod/porch-fn-system/pod"
	podSecret = "abcdefghijklmnopqrstuvwxyz"
)

// mutualTLS compares evaluations in pods with and without mutual TLS between the servers, for a single resource. It
// opens all connections before the measurement.
func (b *bench) mutualTLS(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "overhead-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var ways []way
	for _, secure := range []bool{false, true} {
		chain, err := b.startChain(ctx, filepath.Join(dir, strconv.FormatBool(secure)), secure)
		defer chain.stop()
		if err != nil {
			return err
		}
		ways = append(ways, chain.way)
	}
	list := packagelist.New(1)
	if err := sameOutput(ctx, ways, list); err != nil {
		return err
	}
	rounds, err := b.measureRounds(ctx, ways, list)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(b.out, reportMutualTLS(rounds))
	return err
}

// measureRounds measures two programs alternately. It returns the median durations of both programs in each round.
func (b *bench) measureRounds(ctx context.Context, ways []way, list []byte) (rounds [][2]time.Duration, err error) {
	end := time.Now().Add(b.budget)
	for n := 0; n < 3 || time.Now().Before(end); n++ {
		var medians [2]time.Duration
		for i := range ways {
			i = (i + n) % len(ways) // begin each round with the other way
			got, err := takeTurn(ctx, ways[i], list, 1, b.block)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ways[i].name, err)
			}
			medians[i] = times{evaluations: got}.quantile(.5)
		}
		rounds = append(rounds, medians)
	}
	return rounds, nil
}

// reportMutualTLS describes the medians over all rounds, and the ratio of mutual TLS to plaintext.
func reportMutualTLS(rounds [][2]time.Duration) string {
	ratio, low, high := ratioInterval(rounds)
	medians := func(i int) time.Duration {
		var all times
		for _, r := range rounds {
			all.evaluations = append(all.evaluations, r[i])
		}
		return all.quantile(.5).Round(time.Microsecond)
	}
	verdict := "within"
	if ratio > mutualTLSLimit {
		verdict = "past"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| 1 resource, 1 caller, warm | p50 |\n|---|---|\n| plaintext | %v |\n| mutual TLS | %v |\n\n",
		medians(0), medians(1))
	fmt.Fprintf(&b,
		"Mutual TLS takes %.3f times as long (95 %% confidence: %.3f to %.3f, %d rounds), %s the limit of %.2f.\n",
		ratio, low, high, len(rounds), verdict, mutualTLSLimit)
	return b.String()
}

// ratioInterval returns the geometric mean of the rounds' ratios, and its 95 % confidence interval. Each ratio divides
// the two medians of a round. Slow changes of the machine's speed affect both medians, but not the ratio.
func ratioInterval(rounds [][2]time.Duration) (ratio, low, high float64) {
	n := float64(len(rounds))
	var mean, squares float64
	for _, r := range rounds {
		mean += math.Log(float64(r[1])/float64(r[0])) / n
	}
	for _, r := range rounds {
		squares += math.Pow(math.Log(float64(r[1])/float64(r[0]))-mean, 2)
	}
	around := 1.96 * math.Sqrt(squares/(n-1)/n)
	return math.Exp(mean), math.Exp(mean - around), math.Exp(mean + around)
}
