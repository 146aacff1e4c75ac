# Function Runner. `make help` lists the targets.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

# Each module is built from its own go.mod, and all are built with the same flags, so that
# every step, and every other clone, finds compiled packages in Go's cache. Debug information
# takes a tenth of the compiler's time, and is stripped from programs. (With linker flags
# go test would link again even tests with cached results.) Compilers and linkers run for a
# short time, so they may use more memory: that takes a sixth less processor time. The timeout of a package's tests only
# ends a hang, also on a busy machine.
GO_FLAGS := -trimpath -gcflags=all=-dwarf=false '-toolexec=env GOGC=400' -timeout=30m
export GOWORK := off
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out $(GO_FLAGS),$(shell go env GOFLAGS)) $(GO_FLAGS)

# Not empty on Linux, which the test bed and the attacks need.
LINUX := $(filter Linux,$(shell uname -s))

# Not empty for root on Linux. The tests of new users hide the other launchers of sandboxes, which needs root.
AS_ROOT := $(and $(LINUX),$(filter 0,$(shell id -u)))

# Not empty if the test bed's cluster and registries can run on this machine.
TEST_BED_POSSIBLE := $(if $(KUBECONFIG),,$(shell [ "$$(id -u)" = 0 ] && [ -f /etc/debian_version ] && echo yes))

MODULES := libs services/gateway services/image-resolver services/pod-manager services/function-runner wrapper-server fnctl functions build/images examples/functions test
WORKSPACE := $(filter-out functions,$(MODULES))
# Modules that only pin programs of others.
TOOL_MODULES := functions/apply-setters test/cluster/porch test/collector
BUILD   := $(CURDIR)/.build

# All modules of the workspace at once, for steps that are faster that way.
WORKSPACE_FILE     := $(CURDIR)/go.work
WORKSPACE_PACKAGES := $(WORKSPACE:%=./%/...)

# Tools are built once per version and kept outside the clone.
BUF_VERSION               := v1.73.0
PROTOC_GEN_GO_VERSION     := v1.36.11
PROTOC_GEN_CONNECT_VERSION := v1.21.1
PROTOC_GEN_GRPC_VERSION   := v1.6.0
GOLANGCI_LINT_VERSION     := v2.8.0
HELM_VERSION              := $(shell sed -n 's|.*helm.sh/helm/v3 ||p' test/go.mod)
GOVULNCHECK_VERSION       := v1.9.0
GORELEASER_VERSION        := v2.15.1

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/function-runner
TOOLS := $(CACHE)/tools
BUF                := $(TOOLS)/buf@$(BUF_VERSION)/buf
PROTOC_GEN_GO      := $(TOOLS)/protoc-gen-go@$(PROTOC_GEN_GO_VERSION)/protoc-gen-go
PROTOC_GEN_CONNECT := $(TOOLS)/protoc-gen-connect-go@$(PROTOC_GEN_CONNECT_VERSION)/protoc-gen-connect-go
PROTOC_GEN_GRPC    := $(TOOLS)/protoc-gen-go-grpc@$(PROTOC_GEN_GRPC_VERSION)/protoc-gen-go-grpc
GOLANGCI_LINT      := $(TOOLS)/golangci-lint@$(GOLANGCI_LINT_VERSION)/golangci-lint
HELM               := $(TOOLS)/helm@$(HELM_VERSION)/helm
GOVULNCHECK        := $(TOOLS)/govulncheck@$(GOVULNCHECK_VERSION)/govulncheck
PLUGINS            := $(PROTOC_GEN_GO) $(PROTOC_GEN_CONNECT) $(PROTOC_GEN_GRPC)

# tool builds $(1) at $(2) into the directory of its target, which it creates as a whole.
define tool
	@echo "building $(notdir $@) $(2)"
	@mkdir -p $(TOOLS) && tmp=$$(mktemp -d $(TOOLS)/.build.XXXXXX) && \
	 GOBIN=$$tmp go install $(1)@$(2) && \
	 mkdir -p $(@D) && mv $$tmp/$(notdir $@) $@ && rmdir $$tmp
endef

$(BUF):
	$(call tool,github.com/bufbuild/buf/cmd/buf,$(BUF_VERSION))
$(PROTOC_GEN_GO):
	$(call tool,google.golang.org/protobuf/cmd/protoc-gen-go,$(PROTOC_GEN_GO_VERSION))
$(PROTOC_GEN_CONNECT):
	$(call tool,connectrpc.com/connect/cmd/protoc-gen-connect-go,$(PROTOC_GEN_CONNECT_VERSION))
$(PROTOC_GEN_GRPC):
	$(call tool,google.golang.org/grpc/cmd/protoc-gen-go-grpc,$(PROTOC_GEN_GRPC_VERSION))
$(GOLANGCI_LINT):
	$(call tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_LINT_VERSION))
$(HELM):
	$(call tool,helm.sh/helm/v3/cmd/helm,$(HELM_VERSION))
$(GOVULNCHECK):
	$(call tool,golang.org/x/vuln/cmd/govulncheck,$(GOVULNCHECK_VERSION))

# With more memory, linting takes a third less processor time.
LINT = GOGC=400 GOMEMLIMIT=3GiB $(GOLANGCI_LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml

# The race detector needs a C compiler. As root on Debian it is installed; without
# one the tests run without the race detector. The linters run vet. By default, each program with the race detector
# sleeps for a second before it exits.
GO_TEST = $(shell command -v gcc >/dev/null && echo "GORACE=atexit_sleep_ms=100 CGO_ENABLED=1 go test -race" || echo "go test") -vet=off

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Node.js for the examples, where Debian has it and this machine does not: its package, and packages that it
# needs, without installing them.
NODEJS := $(TOOLS)/nodejs
.PHONY: nodejs
nodejs:
	@command -v node >/dev/null || ! command -v apt-get >/dev/null || $(MAKE) -s $(NODEJS) 2>/dev/null || \
	 echo "Debian's package nodejs cannot be downloaded: run apt-get update, or install it"
$(NODEJS):
	@echo "downloading Debian's package nodejs for an example, 20 MB"
	@mkdir -p $(TOOLS) && tmp=$$(mktemp -d $(TOOLS)/.build.XXXXXX) && trap 'rm -rf $$tmp' EXIT && cd $$tmp && \
	 packages=$$(apt-get install -qs --no-install-recommends nodejs | awk '$$1 == "Inst" {print $$2}') && \
	 test -n "$$packages" && apt-get download -q -o APT::Sandbox::User="$$(id -un)" $$packages && \
	 for package in *.deb; do dpkg -x $$package nodejs; done && mv nodejs $@

.PHONY: run
run: build nodejs ## Start the stack here, render the examples through it, keep serving on 9445
	@NODEJS=$(NODEJS) examples/run.sh --keep

.PHONY: demo
demo: build nodejs ## The same, then stop
	@NODEJS=$(NODEJS) examples/run.sh

# VERSION is what programs print for --version; without it, they print what Go recorded of the commit.
VERSION_FLAG = $(if $(VERSION),-X=github.com/krm-function-runner/function-runner/libs/version.stamped=$(VERSION))

.PHONY: build
build: functions ## Build all programs into .build/bin
	@mkdir -p $(BUILD)/bin
	@for m in services/function-runner services/gateway fnctl wrapper-server; do \
	  (cd $$m && CGO_ENABLED=0 go build -trimpath -ldflags="-s -w $(VERSION_FLAG)" -o $(BUILD)/bin/ .); done
	@cd examples/functions && CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o $(BUILD)/examples/ . ./team

##@ Check

# The runtime of each busy Go program wakes one of its threads every 20 microseconds, and a
# cluster is many such programs: with this timer slack (in nanoseconds), it takes a fifth less
# processor time. Functions get another value, so that tests can distinguish the two.
SET_TIMER_SLACK = echo 2000000 2>/dev/null >/proc/$$$$/timerslack_ns || true

# The test clusters have the same names in all clones: a machine can run one test at a time.
TEST_LOCK      := $(CACHE)/test.lock
WITH_TEST_LOCK := $(if $(TEST_BED_POSSIBLE),mkdir -p $(CACHE); flock -n $(TEST_LOCK) true || echo "waiting: another make test runs on this machine"; flock --close $(TEST_LOCK))

# Two tiers. The first decides about a commit; a test belongs to it unless it is named among the others: here, and in
# test/cluster.mk. Tests that compare durations are in the second tier, and run when nothing else does.
COMMIT_TARGETS := check-generate unit check-proto check-modules lint kpt-compare-short demo first-steps
LONG_TARGETS    = cross test-collector kpt-compare go-install $(if $(AS_ROOT),new-user-short) $(if $(shell command -v npm),site) \
  $(if $(TEST_BED_POSSIBLE),e2e-registries e2e-teardown)
LONG_ALONE     := $(if $(LINUX),attack-short)

# The output of each tier, and what failed tests on a cluster leave. `make test-times` reads the output.
EVIDENCE := $(BUILD)/evidence

# tier runs the targets of a tier, $(2) of them concurrently, and keeps their output. The functions are built first:
# all targets use them, and would build them concurrently.
define tier
	@mkdir -p $(EVIDENCE); $(SET_TIMER_SLACK); begin=$$SECONDS; failed=; \
	 $(WITH_TEST_LOCK) $(MAKE) --no-print-directory --keep-going --jobs=$(2) $(1) 2>&1 | tee $(EVIDENCE)/$@.log || failed=1; \
	 echo "== $@ took $$((SECONDS - begin)) s" | tee -a $(EVIDENCE)/$@.log; \
	 test -z "$$failed" || { echo "evidence: $(EVIDENCE)"; exit 1; }
endef

.PHONY: test
test: prepare functions ## Run the tests that must hold for each commit: those on a cluster, and in parallel the others
	$(call tier,test-cluster test-here,3)

.PHONY: test-all
test-all: ## Run all tests: make test, and then make test-long
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-long

# The targets that run alone have the usual timer slack.
.PHONY: test-long
test-long: prepare functions ## Run the tests that make test leaves out
	$(call tier,test-cluster-long test-here-long,2)
	@$(WITH_TEST_LOCK) $(MAKE) --no-print-directory test-alone 2>&1 | tee -a $(EVIDENCE)/$@.log

.PHONY: test-times
test-times: ## Write the times of the last make test-all into test/README.md
	@test/times.sh $(EVIDENCE) "$(COMMIT_TARGETS) $(E2E_COMMIT_PACKAGES)" \
	 "$(LONG_TARGETS) $(LONG_ALONE) $(E2E_LONG_PACKAGES)"

# Targets without a cluster use the processor time that the tests on a cluster leave: those wait a lot. timed-TARGET
# prints the duration of a target.
.PHONY: test-here test-here-long test-alone
test-here: $(COMMIT_TARGETS:%=timed-%)
test-here-long: $(LONG_TARGETS:%=timed-%)
	@[ -n "$(AS_ROOT)" ] || echo "skipped: make new-user-short, which needs root"
	@command -v npm >/dev/null || echo "skipped: make site, which needs npm"
	@[ -n "$(LINUX)" ] || echo "skipped: make attack-short, which needs Linux"
test-alone: $(LONG_ALONE:%=timed-%)

timed-%:
	@echo "== $*"; begin=$$SECONDS; failed=; nice $(MAKE) --no-print-directory $* || { echo "== $* failed"; failed=1; }; \
	 echo "== $* took $$((SECONDS - begin)) s"; test -z "$$failed"

# This test compares the machine before and after: no other target changes it in the meantime.
timed-e2e-teardown: | $(filter-out timed-e2e-teardown,$(LONG_TARGETS:%=timed-%))

# Go runs a test again if the time of a file that it reads has changed, which is so for all
# files of a fresh clone. So unchanged testdata gets times derived from its content.
.PHONY: testdata-times
testdata-times:
	@test -z "$(LINUX)" || ! git rev-parse --git-dir >/dev/null 2>&1 || { \
	  git ls-files --stage -- ':(glob)**/testdata/**' | grep -vFf <(git ls-files --modified | sed 's/^/\t/') | \
	  while IFS=$$'\t' read -r entry path; do set -- $$entry; touch -h -d "@$$((16#$${2:0:7}))" "$$path"; done; \
	  find $(MODULES) -path '*/testdata*' -type d -exec touch -d @0 {} +; }

# Tests of sandboxes need a launcher.
SANDBOX_TAG = $(shell command -v bwrap >/dev/null && echo "-tags bubblewrap")

# Packages in test/ whose tests compare files, and tests on clusters. They run without the race detector, for which all
# of their imports would be compiled again.
FILE_TESTS := /(charts|dashboards|deploy|guide|manifests|packagelist|release|settings|style)$$|/e2e/

# Go does not notice changed manifests and rules.
UNIT_STEPS := unit-workspace unit-test unit-files unit-functions unit-screens unit-browsers unit-sequential unit-rules
.PHONY: unit $(UNIT_STEPS)
unit: prepare testdata-times ## Run the tests that need only this machine
	@$(MAKE) --no-print-directory --keep-going $(UNIT_STEPS)
unit-workspace:
	GOWORK=$(WORKSPACE_FILE) $(GO_TEST) $(SANDBOX_TAG) $(filter-out ./test/...,$(WORKSPACE_PACKAGES))
unit-test:
	$(if $(LINUX),cd test && $(GO_TEST) -count=1 $$(go list ./... | grep -vE '$(FILE_TESTS)'),\
	@echo "skipped: tests of the test bed and the chart, which need Linux")
unit-files:
	cd test && go test -vet=off -count=1 $(if $(LINUX),$$(go list ./... | grep -E '$(FILE_TESTS)'),./deploy)
unit-functions:
	cd functions && $(GO_TEST) ./...
unit-screens:
	! command -v tmux >/dev/null || (cd fnctl && go test -vet=off -tags tmux -run Screens ./internal/cli)
unit-browsers:
	! command -v chromium >/dev/null || { \
	  (cd services/gateway && go test -vet=off -tags chromium -run Browser ./gateway) && \
	  (cd test && go test -count=1 -vet=off -tags chromium -run Browsers ./deploy); }
unit-sequential: # long tests of code without concurrency, for which the race detector would need ten times as long
	cd services/pod-manager && CGO_ENABLED=0 go test -vet=off -run 'Simulation|Day' ./internal/pool
	cd libs && CGO_ENABLED=0 go test -vet=off -run 'CostlyLists|Limits|CostGrows|DecodeEnds' ./resourcelist
unit-rules:
	! [ -x $(PROMETHEUS)/promtool ] || \
	 (cd test && PATH=$(PROMETHEUS):$$PATH go test -vet=off -count=1 -tags promtool ./dashboards)

.PHONY: first-steps
first-steps: ## Run the commands of the README and docs/first-steps that need neither a cluster nor root, in a new clone
	cd test && go test -vet=off -count=1 -tags firststeps -run FirstSteps ./guide

.PHONY: go-install
go-install: ## Install fnctl as users do, from the tags of a release in a clone
	cd test && go test -vet=off -count=1 -tags goinstall -run GoInstall ./release

NEW_USER = cd services/function-runner && go test -vet=off -count=1 -timeout 60m -tags newuser ./newuser

.PHONY: new-user new-user-short
new-user: ## Clone, build and render as users without rights, on machines with bubblewrap, runc or crun alone (needs root)
	@$(NEW_USER) -newuser.clone
new-user-short: build # The same, with what is built here.
	@$(NEW_USER)

# The cluster of make test has its own name: a developer's cluster is left alone. Leftovers
# of an interrupted run are removed first.
TEST_CLUSTER := make-test

.PHONY: test-cluster test-cluster-long
test-cluster: ## Run the tests of a commit on a cluster: that of KUBECONFIG, or our own
ifdef KUBECONFIG
	@$(MAKE) --no-print-directory e2e
else ifdef TEST_BED_POSSIBLE
	$(call on_test_cluster,e2e)
else
	@echo "skipped: the tests on a cluster, which need root on Debian, or KUBECONFIG"
	@! command -v docker >/dev/null || echo "with Docker: kind create cluster, and KUBECONFIG=~/.kube/config make e2e (test/README.md#another-cluster)"
endif

test-cluster-long: ## Run the other tests on our own cluster
ifeq ($(KUBECONFIG)$(TEST_BED_POSSIBLE),yes)
	$(call on_test_cluster,e2e-long)
else
	@echo "skipped: the tests of faults, upgrades and teardown on a cluster of our own, and of real registries, which need root on Debian"
endif

# on_test_cluster runs a target on a new cluster, and removes the cluster. Make passes its job server only to recipes
# that name $(MAKE) themselves, and the make in this macro would warn that the job server is missing.
WITHOUT_JOB_SERVER = export MAKEFLAGS="$$(sed 's/ -j[0-9]*//; s/ --jobserver-auth=[^ ]*//' <<<"$$MAKEFLAGS")"
define on_test_cluster
	@rm -rf $(EVIDENCE)/$(TEST_CLUSTER)*; $(WITHOUT_JOB_SERVER); $(MAKE) --no-print-directory CLUSTER=$(TEST_CLUSTER) cluster-down
	@failed=; $(WITHOUT_JOB_SERVER); $(MAKE) --no-print-directory CLUSTER=$(TEST_CLUSTER) $(1) || failed=1; \
	 $(MAKE) --no-print-directory CLUSTER=$(TEST_CLUSTER) cluster-down || failed=1; \
	 test -z "$$failed"
endef

.PHONY: e2e-registries
e2e-registries: ## Test the image-resolver with real registries (Debian's docker-registry)
	cd services/image-resolver && $(GO_TEST) -count=1 -tags e2e -run 'Distribution|Program' ./imageresolver

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters, and check sentences and names
	@failed=; \
	 GOWORK=$(WORKSPACE_FILE) $(LINT) $(WORKSPACE_PACKAGES) || failed=1; \
	 (cd functions && $(LINT) ./...) || failed=1; \
	 (cd $(KPTCOMPARE) && $(LINT) ./...) || failed=1; \
	 (cd test && go run ./style) || failed=1; \
	 test -z "$$failed"

# The other platforms that users build on. The test bed needs Linux.
vet_for = GOOS=$(1) GOARCH=$(2) GOWORK=$(WORKSPACE_FILE) go vet $(3)
build_for = for m in $(3); do (cd $$m && GOOS=$(1) GOARCH=$(2) go build -o $(BUILD)/cross/$(1)-$(2)/ .); done
UNIX_PROGRAMS := services/function-runner services/gateway wrapper-server fnctl

.PHONY: cross
cross: cross-short ## Compile programs and tests for Linux and macOS on arm64, and fnctl for Windows
	@$(call vet_for,linux,arm64,$(WORKSPACE_PACKAGES))
	@mkdir -p $(BUILD)/cross
	@$(call build_for,linux,arm64,$(UNIX_PROGRAMS))
	@$(call build_for,darwin,arm64,$(UNIX_PROGRAMS))
	@$(call build_for,windows,amd64,fnctl)

.PHONY: cross-short
cross-short: ## The same without programs, for macOS and Windows: what only Linux has shows there
	@$(call vet_for,darwin,arm64,$(filter-out ./test/...,$(WORKSPACE_PACKAGES)))
	@$(call vet_for,windows,amd64,./fnctl/...)

.PHONY: test-collector
test-collector: $(GOLANGCI_LINT) ## Test the configuration of the OpenTelemetry Collector with a real one, and lint the test
	cd test/collector && go test -vet=off . && $(LINT) ./...

.PHONY: check-generate
check-generate: $(BUF) $(PLUGINS) ## Fail if generated code and tables do not match their sources
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && $(GENERATE) --output="$$tmp" && \
	 mkdir "$$tmp/docs" && cp docs/configuration.md docs/metrics.md "$$tmp/docs" && \
	 (cd test && go run ./settings .. "$$tmp") && \
	 diff -r "$$tmp/libs/gen" libs/gen && diff "$$tmp/docs/configuration.md" docs/configuration.md && \
	 diff "$$tmp/docs/metrics.md" docs/metrics.md || \
	 { echo "generated code or a table in docs is stale: run make generate, and commit the result"; exit 1; }

.PHONY: check-proto
check-proto: $(BUF) ## Lint the protocol buffers, and fail if one breaks an earlier commit's
	@$(BUF) lint && $(BUF) format --diff --exit-code proto
	@commits=$$(git rev-list HEAD -- proto); earlier=$$(mktemp -d); trap 'rm -rf $$earlier' EXIT; for c in $$commits; do \
	  mkdir $$earlier/$$c; git archive $$c buf.yaml proto | tar -x -C $$earlier/$$c; \
	  $(BUF) breaking --against $$earlier/$$c; done
	@git rev-parse -q --verify HEAD~1 >/dev/null || \
	 echo "check-proto: compared with no earlier commit: this clone has only HEAD (run git fetch --unshallow)"

.PHONY: check-modules
check-modules: ## Fail if a module does not build by itself, is not tidy, or uses other versions than the others
	@(cd functions && go list -export ./... >/dev/null)
	@for m in $(WORKSPACE); do (cd $$m && go list -export -deps -f '{{with .Module}}{{.Path}} {{.Version}}{{end}}' ./...); done | sort -u | \
	 awk '$$2 && seen[$$1]++ {print "modules use different versions of " $$1 ": run make tidy"; bad = 1} END {exit bad}'
	@for m in $(MODULES) $(TOOL_MODULES); do (cd $$m && go mod tidy -diff); done

# The programs as they are built: govulncheck reads which functions they link.
.PHONY: vulnerabilities
vulnerabilities: build $(GOVULNCHECK) ## Report known vulnerabilities in the programs (needs vuln.go.dev)
	@failed=; for program in $(BUILD)/bin/*; do \
	  echo "== $$program"; out=$$($(GOVULNCHECK) -mode=binary $$program 2>&1) || \
	  case $$out in *"fetching vulnerabilities"*) echo "skipped: the vulnerability database at vuln.go.dev cannot be reached"; break;; \
	    *) failed=1;; esac; echo "$$out"; \
	 done; test -z "$$failed"

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (default 1m)
	@test/fuzz.sh $(MODULES)

# The first seed is another one in each run; a failure prints the seed, and the script made shorter.
SEEDS ?= 1000
ifndef SEED
SEED := $(shell date +%s)
endif

.PHONY: simulate
simulate: ## Simulate faults of several pod-managers in virtual time (SEEDS=number, SEED=first)
	@echo "the first seed is $(SEED)"
	cd services/pod-manager && go test -vet=off -count=1 -timeout 60m -run TestFleet ./internal/fleet \
	  -args -fleet.seeds $(SEEDS) -fleet.seed $(SEED)
	cd services/pod-manager && go test -vet=off -count=1 -timeout 60m -run TestSimulation ./internal/pool \
	  -args -sim.seeds $$(( 10 * $(SEEDS) )) -sim.seed $(SEED)

# How often tests of processes and real time run, and in which packages (an expression for their directories).
N        ?= 10
PACKAGES ?= .

.PHONY: steady
steady: prepare functions ## Run tests of processes and real time again and again, half of the rounds on a busy machine (N=10 PACKAGES=expression)
	@PACKAGES='$(PACKAGES)' test/steady.sh $(N) $(EVIDENCE)/steady "$(GO_TEST) $(SANDBOX_TAG)"

.PHONY: loadgen
loadgen:
	@cd test && go build -o $(BUILD)/bin/loadgen ./loadgen

.PHONY: bench
bench: build loadgen ## Measure what gateway and wrapper-server add to a bare process, and sandboxes beside podman
	cd test && go run ./overhead

# The file of raw tables; a new run gets a new file.
BENCHMARKS ?= docs/benchmarks/2026-11-25.txt
.PHONY: bench-docs
bench-docs: build loadgen ## Measure the same, and what is remembered, and write all of it into BENCHMARKS
	cd test && go run ./overhead -callers 1,2,8 -ways bare,hop,gateway -document ../$(BENCHMARKS) \
	  -tables overhead,throughput,mutualtls,sandboxes,local,first,confinement,telemetry,hits,memory,round-trips

##@ Develop

space := $(subst ,, )
GENERATE = PATH="$(subst $(space),:,$(dir $(PLUGINS))):$$PATH" $(BUF) generate

.PHONY: generate
generate: $(BUF) $(PLUGINS) ## Generate code from the protocol buffers and settings, and tables of settings, flags and metrics
	@$(GENERATE)
	@cd test && go run ./settings .. ..

.PHONY: tidy
tidy: ## Tidy all modules, and have all use the same versions
	@GOWORK=$(CURDIR)/go.work go work sync
	@for m in $(MODULES) $(TOOL_MODULES); do (cd $$m && go mod tidy); done

.PHONY: fmt
fmt: $(GOLANGCI_LINT) $(BUF) ## Format all code
	@failed=; for m in $(MODULES); do (cd $$m && $(GOLANGCI_LINT) fmt --config $(CURDIR)/.golangci.yml ./...) || failed=1; done; test -z "$$failed"
	@$(BUF) format -w proto

.PHONY: prepare
prepare: ## Install what the tests need, as root on Debian
	@{ command -v apt-get >/dev/null && $(MAKE) --no-print-directory prometheus; } || \
	 { [ -z "$(TEST_BED_POSSIBLE)" ] && echo "skipped: the unit tests of the alerts, which need Debian's promtool"; }
	@command -v npm >/dev/null || echo "skipped: the TypeScript of docs/write-a-function.md, which needs npm"
	@{ command -v gcc && command -v tmux && command -v bwrap && command -v runc && command -v crun && command -v chromium; } >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
	      gcc libc6-dev tmux bubblewrap crun runc chromium; \
	  else \
	    command -v gcc >/dev/null || echo "skipped: the race detector, which needs gcc"; \
	    command -v tmux >/dev/null || echo "skipped: fnctl on terminals, which needs tmux"; \
	    command -v bwrap >/dev/null || echo "skipped: functions in sandboxes, which need bubblewrap"; \
	    command -v chromium >/dev/null || echo "skipped: the status page in a browser, which needs chromium"; fi; }

.PHONY: dashboards
dashboards: ## Generate the dashboards, and the rules for Prometheus' operator
	cd test && go run ./dashboards ../deploy/observability

# Debian's Prometheus without its dependencies and its service: the programs are all that the tests need.
PROMETHEUS := $(TOOLS)/prometheus/usr/bin
.PHONY: prometheus
prometheus: $(PROMETHEUS)/promtool
$(PROMETHEUS)/promtool:
	@mkdir -p $(TOOLS) && tmp=$$(mktemp -d $(TOOLS)/.build.XXXXXX) && cd $$tmp && \
	 download="apt-get -q -o APT::Sandbox::User=root download prometheus" && \
	 { $$download 2>/dev/null || { apt-get -q update && $$download; }; } && dpkg -x prometheus_*.deb prometheus && \
	 rm -rf $(TOOLS)/prometheus && mv prometheus $(TOOLS)/ && rm -rf $$tmp

.PHONY: clean
clean: ## Remove all build results
	rm -rf $(BUILD)

include functions/functions.mk
include build/images/images.mk
include build/site/site.mk
include test/attack.mk
include test/kptcompare/kptcompare.mk
-include test/cluster.mk
