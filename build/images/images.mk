# Releases, images of this directory, and manifests that use them. Included by the root Makefile.

.PHONY: release
release: ## Make all files of VERSION=v0.1.0 from this commit, signed with KEY=key.pem, in .build/release (PLATFORMS=all)
	@test -n "$(VERSION)" -a -n "$(KEY)" || { echo "VERSION or KEY is not set: make release VERSION=v0.1.0 KEY=key.pem"; exit 1; }
	@build/release.sh $(VERSION) $(KEY) $(PLATFORMS)

.PHONY: images
images: ## Build all images with ko and push them to REPO=registry/path (TAG=latest)
	@test -n "$(REPO)" || { echo "REPO is not set: make images REPO=registry.example/path"; exit 1; }
	@$(MAKE) --no-print-directory kodata
	@cd build/images && go run . -root $(CURDIR) -tag $(or $(TAG),latest) \
	 -revision "$$(git rev-parse HEAD 2>/dev/null)" $(REPO)

.PHONY: tags
tags: ## Tag this commit as VERSION=v0.1.0, with the modules that `go install` of fnctl needs
	@test -n "$(VERSION)" || { echo "VERSION is not set: make tags VERSION=v0.1.0"; exit 1; }
	@build/tags.sh $(VERSION)

# Sets the values that have a setter in their comment, as `kpt fn render` does.
.PHONY: manifests
manifests: ## Make deploy/ use the images in REPO=registry/path (TAG=latest)
	@test -n "$(REPO)" || { echo "REPO is not set: make manifests REPO=registry.example/path"; exit 1; }
	@sed -i -E -e 's|^(  registry: ).*|\1$(REPO)|' -e 's|^(  tag: ).*|\1$(or $(TAG),latest)|' deploy/setters.yaml
	@grep -rl ' # kpt-set: ' deploy | xargs sed -i -E -e '/\$$\{(registry|tag)\}/ s|: [^ ]+ # kpt-set: (.*)$$|: \1 # kpt-set: \1|' \
	 -e 's|\$$\{registry\}|$(REPO)|' -e 's|\$$\{tag\}|$(or $(TAG),latest)|'
