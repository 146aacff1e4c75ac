# The documents as static HTML. Included by the root Makefile.

SITE := $(BUILD)/site

# VitePress checks links too. Its packages are installed again when their versions change: by npm install, since npm ci
# requires the packages of all platforms in the lock file, and those of other platforms are not in all registries.
.PHONY: site
site: ## Render the documents to static HTML with search, in .build/site/html (needs npm)
	@command -v npm >/dev/null || { echo "make site needs npm: install it, or read the documents as they are"; exit 1; }
	@mkdir -p $(SITE)/.vitepress && rm -rf $(SITE)/pages $(SITE)/html && mkdir $(SITE)/pages
	@git ls-files -z --cached --others --exclude-standard -- '*.md' docs/images | \
	 while IFS= read -r -d '' file; do ! [ -e "$$file" ] || { mkdir -p "$(SITE)/pages/$$(dirname "$$file")" && cp "$$file" "$(SITE)/pages/$$file"; }; done
	@cp build/site/package.json $(SITE)/ && cp build/site/config.mjs $(SITE)/.vitepress/
	@cmp -s build/site/package-lock.json $(SITE)/node_modules/.installed || { cp build/site/package-lock.json $(SITE)/ && \
	 (cd $(SITE) && npm install --no-audit --no-fund --ignore-scripts --loglevel=error) && \
	 cp build/site/package-lock.json $(SITE)/node_modules/.installed; }
	@cd $(SITE) && node node_modules/vitepress/bin/vitepress.js build --logLevel warn .
	@echo "$(SITE)/html: any web server can serve it, SITE_BASE=/path/ if it is not at the root; to read it here:"
	@echo "  cd $(SITE) && npx vitepress preview ."
