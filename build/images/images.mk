# Releases, images of this directory, and manifests that use them. Included by the root Makefile.

GORELEASER := $(TOOLS)/goreleaser@$(GORELEASER_VERSION)/goreleaser
$(GORELEASER):
	$(call tool,github.com/goreleaser/goreleaser/v2,$(GORELEASER_VERSION))

# Everything that needs neither a registry nor credentials nor docker: archives, packages, the chart, the manifests, checksums.
.PHONY: release-snapshot
release-snapshot: $(GORELEASER) $(HELM) ## Make the files of a release here, without publishing, in .build/dist
	@PATH="$(dir $(HELM)):$$PATH" $(GORELEASER) release --snapshot --clean --skip=sign,sbom,docker

.PHONY: images
images: ## Build all images with ko and push them to REPO=registry/path (TAG=latest)
	@test -n "$(REPO)" || { echo "REPO is not set: make images REPO=registry.example/path"; exit 1; }
	@$(MAKE) --no-print-directory kodata >&2 # standard output is the images' names
	@cd build/images && go run . -root $(CURDIR) -tag $(or $(TAG),latest) \
	 -revision "$$(git rev-parse HEAD 2>/dev/null)" $(REPO)

.PHONY: tags
tags: ## Tag this commit as VERSION=v0.1.0, with the modules that `go install` of fnctl needs
	@test -n "$(VERSION)" || { echo "VERSION is not set: make tags VERSION=v0.1.0"; exit 1; }
	@build/tags.sh $(VERSION)

# The directory with the manifests.
DEPLOY ?= deploy

# Sets the values that have a setter in their comment, as `kpt fn render` does.
.PHONY: manifests
manifests: ## Make deploy/ use the images in REPO=registry/path (TAG=latest)
	@test -n "$(REPO)" || { echo "REPO is not set: make manifests REPO=registry.example/path"; exit 1; }
	@! echo "$(TAG)" | grep -qE '^[0-9]+(\.[0-9]*)?$$' || { echo "TAG=$(TAG) is a number in YAML: add a letter, such as v$(TAG)"; exit 1; }
	@sed -i -E -e 's|^(  registry: ).*|\1$(REPO)|' -e 's|^(  tag: ).*|\1$(or $(TAG),latest)|' $(DEPLOY)/setters.yaml
	@grep -rl ' # kpt-set: ' $(DEPLOY) | xargs sed -i -E -e '/\$$\{(registry|tag)\}/ s|: [^ ]+ # kpt-set: (.*)$$|: \1 # kpt-set: \1|' \
	 -e 's|\$$\{registry\}|$(REPO)|' -e 's|\$$\{tag\}|$(or $(TAG),latest)|'
