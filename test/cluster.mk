# A real Kubernetes for tests, and the tests on it. Included by the root
# Makefile; see test/README.md.

# Name of the cluster: clusters of different names run side by side.
CLUSTER ?= fnr
# Packages with tests for any cluster, and for the test bed.
E2E_PACKAGES ?= ./e2e/cluster
E2E_BED_PACKAGES ?= ./e2e/bed
# Packages with tests of the system on the bed. Two run at a time, the one that takes longest first.
E2E_SYSTEM_PACKAGES ?= ./e2e/pods ./e2e/deploy ./e2e/registries
# Packages that also need the images of the previous version. They contain all of E2E_LONG_TESTS.
E2E_ROLLOUT_PACKAGES ?= ./e2e/deploy
# Packages that change or break the whole cluster for a while: one runs at a time. Those with Porch have a cluster of
# their own, which runs beside the other one: all of them wait a lot.
E2E_PORCH_PACKAGES ?= ./e2e/porch ./e2e/porchmain
E2E_FAULT_PACKAGES ?= ./e2e/faults
# Tests of these packages that make test leaves to make test-long, and packages with such tests only. Tests that compare
# durations run when nothing else does.
E2E_LONG_TESTS := TestPanelsHaveData|TestTracesAreWhole|TestSkaffold|TestClusterDemo|TestRightsAreMinimal|$\
  TestCallersProveWhoTheyAre|TestCertificatesRotateUnderLoad|TestIssuerRotatesUnderLoad|$\
  TestOverlays/published|TestPorchsExampleWithoutRights|TestPorchIsReplacedInPlace
E2E_TIMED_TESTS := TestColdStartIsLittleMoreThanAPod
E2E_TIMED_PACKAGES := ./e2e/pods
E2E_LONG_ALONE_PACKAGES ?= ./e2e/release ./e2e/chaos
E2E_COMMIT_PACKAGES = $(E2E_PACKAGES) $(E2E_BED_PACKAGES) $(E2E_SYSTEM_PACKAGES) $(E2E_FAULT_PACKAGES) $(E2E_PORCH_PACKAGES)
E2E_LONG_PACKAGES = $(E2E_PACKAGES) $(E2E_BED_PACKAGES) $(E2E_ROLLOUT_PACKAGES) $(E2E_LONG_ALONE_PACKAGES) $(E2E_TIMED_PACKAGES)
PORCH_CLUSTER = $(CLUSTER)-porch
# The commit that upgrades are tested from, and rollbacks to: the last release, or one from
# before the first release.
PREVIOUS ?= 9ecc4deb1e21b5c8a7949580678be6916aa40798
# The directory for logs, events and objects of a failing run.
E2E_EVIDENCE ?= $(EVIDENCE)/$(CLUSTER)

# The OpenTelemetry Collector is built from its modules, which the other modules do without.
COLLECTOR := $(CURDIR)/.build/bin/collector
BUILD_COLLECTOR = cd test/collector && go build -o $(COLLECTOR) .

CLUSTER_PROGRAM := $(CURDIR)/.build/bin/cluster
CLUSTER_COMMAND = $(CLUSTER_PROGRAM) --root $(CURDIR) --name $(CLUSTER)
# Tests start Debian's Prometheus, and the collector.
BED_GO = cd test && PATH=$(PROMETHEUS):$(dir $(HELM)):$$PATH FNR_EVIDENCE=$(E2E_EVIDENCE) FNR_COLLECTOR=$(COLLECTOR) go
E2E_TEST = $(BED_GO) test -vet=off -count=1 -tags e2e
E2E_IN_CLUSTER = -exec '$(CLUSTER_COMMAND) exec --'

.PHONY: cluster-program
cluster-program:
	@$(BED_GO) build -o $(CLUSTER_PROGRAM) ./cluster

.PHONY: cluster-up
cluster-up: cluster-program $(PROMETHEUS)/promtool ## Bring up a real Kubernetes (CLUSTER=name)
	$(CLUSTER_COMMAND) up

.PHONY: cluster-down
cluster-down: cluster-program ## Take it down without a trace (CLUSTER=name)
	$(CLUSTER_COMMAND) down
	$(CLUSTER_PROGRAM) --root $(CURDIR) --name $(PORCH_CLUSTER) down

.PHONY: e2e e2e-one e2e-one-named
e2e-one-named:
	@test -n "$(PACKAGE)" -a -n "$(RUN)" || { echo "name the test: make e2e-one PACKAGE=./e2e/pods RUN=TestPorchTemplate"; exit 1; }

ifdef KUBECONFIG
e2e: ## Run the end-to-end tests, on the cluster of KUBECONFIG or on the test bed
	$(E2E_TEST) $(E2E_PACKAGES)

e2e-one: e2e-one-named ## Run one end-to-end test, on the same cluster (PACKAGE=./e2e/pods RUN=TestPorchTemplate ARGS=flags)
	$(E2E_TEST) -run '$(RUN)' $(PACKAGE) $(if $(ARGS),-args $(ARGS))
else
e2e: cluster-up
	@$(MAKE) --no-print-directory e2e-here || { $(CLUSTER_COMMAND) evidence $(E2E_EVIDENCE)/cluster; exit 1; }

# What a package needs besides our images is built and pushed first, as for e2e-here.
e2e-one: e2e-one-named cluster-up $(if $(filter ./e2e/release,$(PACKAGE)),$(HELM))
	$(CLUSTER_COMMAND) images
	$(if $(filter $(E2E_ROLLOUT_PACKAGES),$(PACKAGE)),$(CLUSTER_COMMAND) previous $(PREVIOUS) && $(BUILD_COLLECTOR))
	$(if $(filter $(E2E_PORCH_PACKAGES),$(PACKAGE)),$(CLUSTER_COMMAND) porch)
	@$(MAKE) --no-print-directory kpt-program
	export FNR_PORCH=$$($(CLUSTER_COMMAND) tool porch) FNR_SKAFFOLD=$$($(CLUSTER_COMMAND) tool skaffold) \
	 FNR_KUSTOMIZE=$$($(CLUSTER_COMMAND) tool kustomize) FNR_KPT=$(KPTCOMPARE_PROGRAMS)/kpt; \
	 $(E2E_TEST) $(E2E_IN_CLUSTER) -run '$(RUN)' $(PACKAGE) $(if $(ARGS),-args $(ARGS))

# The tests of the cluster run while our images are built, those of the bed while the images of the previous version
# are, and those with Porch beside all others.
.PHONY: e2e-here
e2e-here:
	@$(MAKE) --no-print-directory CLUSTER=$(PORCH_CLUSTER) e2e-porch & \
	 failed=; $(MAKE) --no-print-directory e2e-system || failed=1; wait $$! && test -z "$$failed"

.PHONY: e2e-system
e2e-system:
	$(CLUSTER_COMMAND) images & failed=; $(E2E_TEST) $(E2E_IN_CLUSTER) $(E2E_PACKAGES) || failed=1; \
	 wait $$! && test -z "$$failed"
	$(CLUSTER_COMMAND) previous $(PREVIOUS) & failed=; $(E2E_TEST) $(E2E_IN_CLUSTER) $(E2E_BED_PACKAGES) || failed=1; \
	 wait $$! && test -z "$$failed"
	export FNR_PORCH=$$($(CLUSTER_COMMAND) tool porch); \
	 $(E2E_TEST) -p 2 -parallel 4 $(E2E_IN_CLUSTER) -skip '$(E2E_LONG_TESTS)|$(E2E_TIMED_TESTS)' $(E2E_SYSTEM_PACKAGES)
	$(E2E_TEST) -p 1 $(E2E_IN_CLUSTER) $(E2E_FAULT_PACKAGES)

# The tests that make test leaves out. Those of the cluster and the bed run twice in a row here.
.PHONY: e2e-long
e2e-long: cluster-up $(HELM)
	@$(MAKE) --no-print-directory e2e-long-here || { $(CLUSTER_COMMAND) evidence $(E2E_EVIDENCE)/cluster; exit 1; }

.PHONY: e2e-long-here
e2e-long-here:
	$(CLUSTER_COMMAND) images && $(CLUSTER_COMMAND) previous $(PREVIOUS)
	@$(MAKE) --no-print-directory kpt-program
	$(BUILD_COLLECTOR) & failed=; \
	 $(E2E_TEST) -count=2 $(E2E_IN_CLUSTER) $(E2E_PACKAGES) $(E2E_BED_PACKAGES) || failed=1; wait $$! && test -z "$$failed"
	export FNR_SKAFFOLD=$$($(CLUSTER_COMMAND) tool skaffold) FNR_PORCH=$$($(CLUSTER_COMMAND) tool porch) \
	 FNR_KUSTOMIZE=$$($(CLUSTER_COMMAND) tool kustomize) FNR_KPT=$(KPTCOMPARE_PROGRAMS)/kpt; \
	 $(E2E_TEST) -parallel 4 $(E2E_IN_CLUSTER) -run '$(E2E_LONG_TESTS)' $(E2E_ROLLOUT_PACKAGES)
	$(E2E_TEST) -v -p 1 $(E2E_IN_CLUSTER) $(E2E_LONG_ALONE_PACKAGES)
	$(E2E_TEST) -v -p 1 $(E2E_IN_CLUSTER) -run '$(E2E_TIMED_TESTS)' $(E2E_TIMED_PACKAGES)

.PHONY: e2e-porch
e2e-porch: cluster-up
	$(CLUSTER_COMMAND) images && $(CLUSTER_COMMAND) porch
	export FNR_PORCH=$$($(CLUSTER_COMMAND) tool porch); \
	 $(E2E_TEST) -v -p 1 $(E2E_IN_CLUSTER) $(E2E_PORCH_PACKAGES) || { $(CLUSTER_COMMAND) evidence $(E2E_EVIDENCE)/cluster; exit 1; }
	$(CLUSTER_COMMAND) down
endif

# How long things break, and by which seed: another one in each run, which the test prints.
CHAOS_TIME ?= 5m
CHAOS_SEED ?=

.PHONY: chaos
chaos: cluster-up ## Break replicas, networks, pods and the node at random under load (CHAOS_TIME=5m, CHAOS_SEED=number)
	$(CLUSTER_COMMAND) images
	$(E2E_TEST) -v $(E2E_IN_CLUSTER) -run TestChaos ./e2e/chaos \
	  -args -chaos.time $(CHAOS_TIME) $(if $(CHAOS_SEED),-chaos.seed $(CHAOS_SEED))

ROTATION_TIME ?= 5m

.PHONY: rotation
rotation: cluster-up ## Replace all certificates every ten seconds under callers, and have the issuer do so (ROTATION_TIME=5m)
	$(CLUSTER_COMMAND) images
	$(E2E_TEST) -v $(E2E_IN_CLUSTER) -run 'TestCertificatesRotateUnderLoad|TestIssuerRotatesUnderLoad' ./e2e/deploy \
	  -args -rotate.time $(ROTATION_TIME)

.PHONY: e2e-observe
e2e-observe: cluster-up ## Cause the incident of each alert, and trace a cold start through a real collector (CHARTS=docs/images draws the dashboards)
	$(CLUSTER_COMMAND) images
	$(BUILD_COLLECTOR)
	$(E2E_TEST) -v $(E2E_IN_CLUSTER) -run 'TestPanelsHaveData|TestTracesAreWhole|TestEachAlert' ./e2e/deploy \
	  -args -observe.long $(if $(CHARTS),-observe.charts $(abspath $(CHARTS)))

EVALUATIONS ?= 100000

.PHONY: soak
soak: cluster-up ## Evaluate functions many times, and compare what each program has before and after (EVALUATIONS=100000)
	$(CLUSTER_COMMAND) images
	$(E2E_TEST) -v -timeout 60m $(E2E_IN_CLUSTER) -run TestChaos ./e2e/chaos -args -chaos.time 1s -chaos.evaluations $(EVALUATIONS)

# The first cluster on a machine waits until its components are built.
.PHONY: e2e-teardown
e2e-teardown: cluster-program ## Test that a cluster leaves nothing behind
	$(E2E_TEST) ./e2e/teardown -args -cluster $(CLUSTER_PROGRAM) -root $(CURDIR)

# How long each list is measured with each load, how many bursts there are, and where the tables go.
BENCH_TIME   ?= 1m
BENCH_BURSTS ?= 10
BENCH_TABLES := $(BUILD)/bench
E2E_BENCH = $(E2E_TEST) -v -run '^$$' -timeout 60m $(E2E_IN_CLUSTER)
BENCH_PODS = ./e2e/pods -args -bench.loadgen $(BUILD)/bin/loadgen -bench.functions $(FUNCTIONS_DIR) \
  -bench.time $(BENCH_TIME) -bench.tables $(BENCH_TABLES)

.PHONY: bench-cluster
bench-cluster: build loadgen cluster-up ## Measure function pods beside bare processes: one caller, 8 with 4 pods, bursts of 100 (BENCH_TIME=1m, BENCH_BURSTS=10)
	$(CLUSTER_COMMAND) images
	@rm -rf $(BENCH_TABLES) && mkdir -p $(BENCH_TABLES)
	$(E2E_BENCH) -bench BarePod -benchtime 10x ./e2e/cluster
	$(E2E_BENCH) -bench 'Warm|Throughput' -benchtime 1x $(BENCH_PODS)
	$(E2E_BENCH) -bench Burst -benchtime $(BENCH_BURSTS)x $(BENCH_PODS)

.PHONY: bench-cold
bench-cold: loadgen cluster-up ## Measure cold starts of each kind, and of a bare pod
	$(CLUSTER_COMMAND) images
	@mkdir -p $(BENCH_TABLES)
	$(E2E_BENCH) -bench ColdStart -benchtime 30x $(BENCH_PODS)

.PHONY: bench-docs-cluster
bench-docs-cluster: ## Measure function pods and cold starts, and write them into BENCHMARKS, also figures beyond a limit
	@rm -rf $(BENCH_TABLES)
	@failed=0; $(MAKE) -k bench-cluster bench-cold || failed=$$?; \
	  (cd test && go run ./overhead -document ../$(BENCHMARKS) -insert $(BENCH_TABLES)) && exit $$failed

.PHONY: cluster-demo
cluster-demo: build cluster-up ## Deploy to the cluster, render the examples in pods, show the pods
	$(CLUSTER_COMMAND) images
	$(CLUSTER_COMMAND) exec -- $(CURDIR)/examples/cluster-demo.sh
