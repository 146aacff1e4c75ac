# Attacks on the programs, and mutations of the core packages. Included by the root
# Makefile; see test/README.md.

ATTACK_PROGRAMS := services/function-runner services/gateway services/pod-manager services/image-resolver wrapper-server

GREMLINS_VERSION := v0.6.0
GREMLINS         := $(TOOLS)/gremlins@$(GREMLINS_VERSION)/gremlins

$(GREMLINS):
	$(call tool,github.com/go-gremlins/gremlins/cmd/gremlins,$(GREMLINS_VERSION))

.PHONY: attack-programs
attack-programs:
	@mkdir -p $(BUILD)/attack
	@for m in $(ATTACK_PROGRAMS); do (cd $$m && go build -ldflags="-s -w" -o $(BUILD)/attack/ .); done
	@cd test && go build -o $(BUILD)/attack/ ./attack ./attack/function

.PHONY: attack
attack: attack-programs ## Attack each program as hostile callers and functions would (ATTACKS=expression)
	@$(BUILD)/attack/attack -bin $(BUILD)/attack -only '$(ATTACKS)'

.PHONY: attack-short
attack-short: attack-programs ## The same in two minutes: fewer attacks, fewer programs
	@$(BUILD)/attack/attack -bin $(BUILD)/attack -short -only '$(ATTACKS)'

.PHONY: mutate
mutate: $(GREMLINS) ## Change the core packages, and see which changes their tests notice (MUTATE=expression)
	@cd test && go build -o $(BUILD)/bin/ ./mutate
	@$(BUILD)/bin/mutate -root $(CURDIR) -gremlins $(GREMLINS) -only '$(MUTATE)'
