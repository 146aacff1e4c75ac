# fnctl compared with kpt itself. Included by the root Makefile; see docs/fnctl.md.

# The module of the comparison is outside of go.work: kpt chooses the versions of its libraries.
KPTCOMPARE           := test/kptcompare
KPTCOMPARE_PROGRAMS  := $(BUILD)/kptcompare
KPTCOMPARE_FUNCTIONS := noop label name order count drop generate move wipe quote warn log fail crash spoil twice again garbage

.PHONY: kptcompare-programs
kptcompare-programs:
	@mkdir -p $(KPTCOMPARE_PROGRAMS)/functions
	@for m in services/gateway fnctl; do (cd $$m && go build -ldflags="-s -w" -o $(KPTCOMPARE_PROGRAMS)/ .); done
	@cd $(KPTCOMPARE) && go build -ldflags="-s -w" -o $(KPTCOMPARE_PROGRAMS)/docker ./fn
	@for f in $(KPTCOMPARE_FUNCTIONS); do ln -f $(KPTCOMPARE_PROGRAMS)/docker $(KPTCOMPARE_PROGRAMS)/functions/$$f; done

.PHONY: kpt-program
kpt-program:
	@cd $(KPTCOMPARE) && go build -ldflags="-s -w" -o $(KPTCOMPARE_PROGRAMS)/ github.com/GoogleContainerTools/kpt

.PHONY: kpt-compare
kpt-compare: kptcompare-programs kpt-program cluster-program ## Compare fnctl with kpt itself, and fnctl in docker's place with docker
	@for tool in kustomize skaffold; do ln -sf $$($(CLUSTER_COMMAND) tool $$tool) $(KPTCOMPARE_PROGRAMS)/ || exit 1; done
	@cd $(KPTCOMPARE) && KPTCOMPARE_PROGRAMS=$(KPTCOMPARE_PROGRAMS) KPTCOMPARE_KPT=yes go test -vet=off -count=1 .

.PHONY: kpt-compare-short
kpt-compare-short: kptcompare-programs ## The same without building kpt: with what it did before
	@cd $(KPTCOMPARE) && KPTCOMPARE_PROGRAMS=$(KPTCOMPARE_PROGRAMS) go test -vet=off -count=1 .
