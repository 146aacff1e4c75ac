// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/policy"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// evaluator serves one repository, or all if it has none, and does what run does.
type evaluator struct {
	name, only string
	run        func(ctx context.Context, req evaluation.Request) error
}

func (e evaluator) Name() string { return e.name }

func (e evaluator) Serves(image imagename.Name) bool {
	return e.only == "" || image.Repository == e.only
}

func (e evaluator) Evaluate(ctx context.Context, req evaluation.Request) (evaluation.Response, error) {
	if e.run == nil {
		return evaluation.Response{}, nil
	}
	return evaluation.Response{}, e.run(ctx, req)
}

// request asks for an image.
func request(repository string) evaluation.Request {
	image := imagename.Name{Repository: repository, Tag: "v1"}
	return evaluation.Request{Given: repository, Image: image, Caller: "10.0.0.1"}
}

// newGuard returns a guard with a policy.
func newGuard(t *testing.T, content string, change func(*guard.Config)) *guard.Guard {
	t.Helper()
	cfg := guard.Config{File: filepath.Join(t.TempDir(), "policy.yaml"), Telemetry: telemetry.Discard()}
	write(t, cfg.File, content)
	if change != nil {
		change(&cfg)
	}
	g, err := guard.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEvaluatorsThatThePolicyDeniesArePassedOver has local binaries for one image only.
func TestEvaluatorsThatThePolicyDeniesArePassedOver(t *testing.T) {
	g := newGuard(t, `
default: allow
rules:
- {name: pods-only, images: [a.io/pods/**], when: evaluator == "exec", action: deny}
- {name: exec-only, when: evaluator == "pod" && image.tag == "v1", images: [a.io/exec/**], action: deny}
- {name: nowhere, images: [b.io/**], action: deny, message: b.io is closed}
- {name: team-a, images: [c.io/**], when: caller.id == "a", action: allow}
- {name: others, images: [c.io/**], action: deny}
`, nil)
	chain := evaluation.Chain{
		g.Wrap(evaluator{name: "exec", only: "a.io/pods/fn"}), g.Wrap(evaluator{name: "pod"}),
	}
	tests := map[string]struct {
		repository, caller string
		evaluator          string // empty if it is denied
		says               string
	}{
		"passed over": {"a.io/pods/fn", "", "pod", ""},
		"not served, denied": {
			"a.io/exec/fn", "", "", `function "a.io/exec/fn" is rejected by the rule "exec-only" of the policy`,
		},
		"denied with a message":  {"b.io/fn", "", "", "b.io is closed"},
		"the caller is allowed":  {"c.io/fn", "a", "pod", ""},
		"another caller":         {"c.io/fn", "b", "", `rule "others"`},
		"no rule is about these": {"d.io/fn", "", "pod", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := caller.With(t.Context(), caller.Identity{ID: tc.caller, Kind: caller.Token})
			resp, err := chain.Evaluate(ctx, request(tc.repository))
			if resp.Evaluator != tc.evaluator || (err == nil) != (tc.evaluator != "") {
				t.Errorf("evaluated by %q, %v, want %q", resp.Evaluator, err, tc.evaluator)
			}
			if err != nil && (fault.Of(err) != fault.Denied || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("%v of class %v, want denied with %q", err, fault.Of(err), tc.says)
			}
		})
	}
}

func TestListsOfTagsAreAskedFor(t *testing.T) {
	const rule = `{name: r, action: deny, images: [a.io/**], when: operation == "list-tags"}`
	g := newGuard(t, "{default: allow, rules: ["+rule+"]}", nil)
	err := g.Permit(t.Context(), "a.io/fn")
	if fault.Of(err) != fault.Denied || !strings.Contains(err.Error(), `rule "r"`) {
		t.Errorf("got %v, want a denial", err)
	}
	if err := g.Permit(t.Context(), "b.io/fn"); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

// TestLimits has evaluations that run at a time, and one after the other.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, `
default: allow
rules:
- {name: two, images: [two.io/**], action: allow, limits: {concurrency: 2}}
- {name: slow, images: [slow.io/**], action: allow, limits: {rate: 0.5}}
- {name: short, images: [short.io/**], action: allow, limits: {evaluationTime: 3s}}
- {name: offline, images: [off.io/**], action: allow, limits: {network: false}}
`, nil)
		end := make(chan struct{})
		waits := g.Wrap(evaluator{name: "pod", run: func(ctx context.Context, req evaluation.Request) error {
			limited, cancel := req.Limit.Context(ctx)
			defer cancel()
			select {
			case <-end:
				return nil
			case <-limited.Done():
				return context.Cause(limited)
			}
		}})
		for range 2 {
			go func() {
				if _, err := waits.Evaluate(t.Context(), request("two.io/fn")); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		_, err := waits.Evaluate(t.Context(), request("two.io/fn"))
		if after, ok := fault.RetryAfter(err); fault.Of(err) != fault.Exhausted || !ok || after <= 0 {
			t.Errorf("the third evaluation: %v of class %v, want exhausted with a hint", err, fault.Of(err))
		}
		began := time.Now()
		_, err = waits.Evaluate(t.Context(), request("short.io/fn"))
		if took := time.Since(began); took != 3*time.Second || !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "raise limits.evaluationTime of rule short in ") {
			t.Errorf("after %v: %v", took, err)
		}
		close(end)
		synctest.Wait()
		if _, err := waits.Evaluate(t.Context(), request("two.io/fn")); err != nil {
			t.Errorf("after the others ended: %v", err)
		}
		if _, err := waits.Evaluate(t.Context(), request("slow.io/fn")); err != nil {
			t.Errorf("the first of the rate: %v", err)
		}
		_, err = waits.Evaluate(t.Context(), request("slow.io/fn"))
		after, ok := fault.RetryAfter(err)
		if fault.Of(err) != fault.Exhausted || !ok || after != 2*time.Second {
			t.Errorf("the second: %v, to be tried after %v, want 2s", err, after)
		}
		<-time.After(after)
		if _, err := waits.Evaluate(t.Context(), request("slow.io/fn")); err != nil {
			t.Errorf("after %v: %v", after, err)
		}
		offline := g.Wrap(evaluator{name: "exec", run: func(_ context.Context, req evaluation.Request) error {
			if req.UsesNetwork(true) {
				return errors.New("the function has the network")
			}
			return nil
		}})
		if _, err := offline.Evaluate(t.Context(), request("off.io/fn")); err != nil {
			t.Error(err)
		}
	})
}

// resolver knows one digest, of an index.
type resolver struct{ err error }

func (r resolver) ResolveImage(context.Context, *imageresolverv1.ResolveImageRequest) (
	*imageresolverv1.ResolveImageResponse, error,
) {
	return &imageresolverv1.ResolveImageResponse{Digest: "sha256:good", IndexDigest: "sha256:index"}, r.err
}

// TestOnlyWhereADigestDecidesIsItResolved asks a registry about no image that the policy denies anyway.
func TestOnlyWhereADigestDecidesIsItResolved(t *testing.T) {
	const content = `{default: deny, rules: [
		{name: plain, images: [a.io/*], action: allow},
		{name: digest, images: [b.io/*], action: allow, when: image.indexDigest == "sha256:index"}]}`
	for repository, want := range map[string]fault.Class{
		"a.io/fn": fault.Internal, "b.io/fn": fault.Unavailable, "elsewhere.io/fn": fault.Denied,
	} {
		g := newGuard(t, content, func(cfg *guard.Config) {
			cfg.Resolver = resolver{fault.New(fault.Unavailable, "it was asked")}
		})
		run := func(context.Context, evaluation.Request) error { return fault.New(fault.Internal, "it ran") }
		_, err := g.Wrap(evaluator{name: "pod", run: run}).Evaluate(t.Context(), request(repository))
		if fault.Of(err) != want {
			t.Errorf("%s: %v of class %v, want %v", repository, err, fault.Of(err), want)
		}
	}
	g := newGuard(t, content, func(cfg *guard.Config) { cfg.Resolver = resolver{} })
	if _, err := g.Wrap(evaluator{name: "pod"}).Evaluate(t.Context(), request("b.io/fn")); err != nil {
		t.Errorf("the digest of the index: %v", err)
	}
}

// TestTheDigestThatWasDecidedAboutIsRequired has a rule by digest.
func TestTheDigestThatWasDecidedAboutIsRequired(t *testing.T) {
	const content = `{default: deny, rules: [{name: r, action: allow, when: image.digest == "sha256:good"}]}`
	g := newGuard(t, content, func(cfg *guard.Config) { cfg.Resolver = resolver{} })
	required := ""
	keep := func(_ context.Context, req evaluation.Request) error {
		required = req.Digest
		return nil
	}
	if _, err := g.Wrap(evaluator{name: "pod", run: keep}).Evaluate(t.Context(), request("a.io/fn")); err != nil {
		t.Fatal(err)
	}
	if required != "sha256:good" {
		t.Errorf("the evaluator has to run %q", required)
	}
	if _, err := g.Wrap(evaluator{name: "exec"}).Evaluate(t.Context(), request("a.io/fn")); fault.Of(err) != fault.Denied {
		t.Errorf("a local binary, which has no digest: %v, want a denial", err)
	}
	g = newGuard(t, content, func(cfg *guard.Config) {
		cfg.Resolver = resolver{fault.New(fault.NotFound, "the registry does not know it")}
	})
	_, err := g.Wrap(evaluator{name: "pod"}).Evaluate(t.Context(), request("a.io/fn"))
	if fault.Of(err) != fault.Precondition {
		t.Errorf("%v of class %v, want precondition: another evaluator must not be asked", err, fault.Of(err))
	}
}

// TestADigestThatCannotBeLookedUpRejects has a rule that denies by digest, and no image-resolver.
func TestADigestThatCannotBeLookedUpRejects(t *testing.T) {
	g := newGuard(t, `{default: allow, rules: [{name: r, action: deny, when: image.digest == "sha256:bad"}]}`, nil)
	_, err := g.Wrap(evaluator{name: "pod"}).Evaluate(t.Context(), request("a.io/fn"))
	if fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), "FNR_IMAGE_RESOLVER") {
		t.Errorf("an image by tag: %v of class %v, want precondition with the setting's name", err, fault.Of(err))
	}
	named := request("a.io/fn")
	named.Image.Digest = "sha256:good"
	if _, err := g.Wrap(evaluator{name: "pod"}).Evaluate(t.Context(), named); err != nil {
		t.Errorf("an image by digest: %v", err)
	}
}

// lines is a log that tests wait for.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// await reads lines up to one with a text.
func (l lines) await(text string) {
	for !strings.Contains(<-l, text) {
	}
}

// TestABrokenFileChangesNothing follows a file that breaks, and is repaired.
func TestABrokenFileChangesNothing(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	log := make(lines, 100)
	tel.Log = slog.New(slog.NewTextHandler(log, nil))
	file := ""
	g := newGuard(t, "{default: deny, rules: [{name: one, action: allow, images: [a.io/**]}]}", func(cfg *guard.Config) {
		cfg.Telemetry, file = tel, cfg.File
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- g.Watch(ctx) }()
	pod := g.Wrap(evaluator{name: "pod"})
	evaluate := func(repository string) error {
		_, err := pod.Evaluate(t.Context(), request(repository))
		return err
	}
	write(t, file, "{default: allow, rules: [{name: two, action: allow, when: 'caller.id =='}]}")
	log.await("policy not changed")
	if err := evaluate("a.io/fn"); err != nil || fault.Of(evaluate("b.io/fn")) != fault.Denied {
		t.Errorf("the first rules are not in force any more: %v, %v", err, evaluate("b.io/fn"))
	}
	metrics := scrape()
	for _, want := range []string{
		"fn_policy_failures_total 1", "fn_policy_in_force 0", "fn_policy_rules 1",
		`fn_policy_decisions_total{decision="allow",rule="one"} 1`,
		`fn_policy_decisions_total{decision="deny",rule="default"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	write(t, file, "{default: allow, rules: [{name: two, action: deny, when: evaluator == \"pods\"}]}")
	log.await("policy has a rule that never matches")
	log.await("default=allow")
	if err := evaluate("b.io/fn"); err != nil {
		t.Errorf("after the repair: %v", err)
	}
	if !strings.Contains(scrape(), "fn_policy_in_force 1") {
		t.Error("fn_policy_in_force is not 1 after the repair")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestStartNeedsAGoodFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "policy.yaml")
	for name, cfg := range map[string]guard.Config{
		"missing": {File: missing}, "wrong list": {Lists: policy.Lists{Deny: []string{"a="}}},
	} {
		cfg.Telemetry = telemetry.Discard()
		if _, err := guard.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	write(t, missing, "rules: []")
	_, err := guard.New(guard.Config{File: missing, Telemetry: telemetry.Discard()})
	if err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "default is") {
		t.Errorf("got %v, want the file and what is wrong with it", err)
	}
}
