// SPDX-License-Identifier: Apache-2.0

// How VitePress renders the documents of this repository, which site.mk copies to pages/. They keep their places,
// so that links between them are the same as in the repository.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const repository = "https://github.com/krm-function-runner/function-runner";
const pages = fileURLToPath(new URL("../pages", import.meta.url));

// title returns the first heading of a page.
const title = (page) => readFileSync(join(pages, page), "utf8").match(/^# (.*)$/m)[1].replaceAll("`", "");

const link = (page) => ({ text: title(page), link: "/" + page.replace(/README\.md$/, "").replace(/\.md$/, "") });

const group = (text, ...all) => ({ text, items: all.map(link) });

// directory is a group of all pages of a directory, its README first.
const directory = (text, dir) => ({
  ...group(text, ...readdirSync(join(pages, dir)).filter((f) => f.endsWith(".md"))
    .sort((a, b) => (b === "README.md") - (a === "README.md") || a.localeCompare(b)).map((f) => `${dir}/${f}`)),
  collapsed: true,
});

// target returns where a link of a page leads: to another page, or to the repository if it is a file of another kind.
function target(page, href) {
  if (/^([a-z]+:|#|\/)/.test(href)) return href;
  const [path, anchor] = href.split("#");
  const hash = anchor === undefined ? "" : "#" + anchor;
  const file = normalize(join(dirname(page), decodeURI(path))).replace(/\/$/, "");
  if (existsSync(join(pages, file, "README.md"))) return `/${file}/${hash}`;
  if (!file.endsWith(".md")) return `${repository}/blob/main/${file}${hash}`;
  return "/" + file.replace(/README\.md$/, "") + hash;
}

const sidebar = [
  { ...directory("First steps", "docs/first-steps"), collapsed: false },
  group("Use", "README.md", "docs/README.md", "docs/concepts.md", "docs/fnctl.md", "docs/ci.md", "docs/docker.md",
    "docs/write-a-function.md", "examples/README.md"),
  group("Operate", "docs/install.md", "docs/how-to.md", "deploy/README.md", "docs/replacing-porch.md",
    "docs/configuration.md", "docs/function-pods.md", "docs/policy.md", "docs/scale.md", "docs/metrics.md",
    "docs/troubleshooting.md", "docs/security.md", "docs/security-tests.md", "docs/performance.md", "docs/releases.md"),
  directory("Runbooks", "docs/runbooks"),
  group("Project", "ARCHITECTURE.md", "CONTRIBUTING.md", "GOVERNANCE.md", "MAINTAINERS.md", "SECURITY.md", "AGENTS.md",
    "CHANGELOG.md", "functions/README.md"),
  directory("Decisions", "docs/decisions"),
  group("Tests", "test/README.md"),
];

// Each page is in the side bar.
const listed = new Set(sidebar.flatMap(({ items }) => items.map(({ link }) => link)));
for (const file of readdirSync(pages, { recursive: true }).filter((f) => f.endsWith(".md") && !f.startsWith("."))) {
  const { link: page } = link(file);
  if (!listed.has(page)) throw new Error(`${file} is not in the side bar: add it to build/site/config.mjs`);
}

export default {
  srcDir: "pages",
  outDir: "html",
  title: "Function Runner",
  description: "Runs KRM functions for Porch and kpt",
  base: process.env.SITE_BASE || "/",
  ignoreDeadLinks: "localhostLinks",
  rewrites: Object.fromEntries(readdirSync(pages, { recursive: true }).filter((f) => /(^|\/)README\.md$/.test(f))
    .map((f) => [f, f.replace(/README\.md$/, "index.md")])),
  markdown: {
    html: false, // documents have words in angle brackets, and no HTML
    // The anchors of headings are GitHub's.
    anchor: { slugify: (s) => s.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-") },
    config(md) {
      md.core.ruler.push("targets", (state) => {
        for (const token of state.tokens.flatMap((t) => t.children ?? [])) {
          if (token.type !== "link_open") continue;
          const page = state.env.realPath ?? state.env.path;
          token.attrSet("href", target(page.slice(pages.length + 1), token.attrGet("href")));
        }
      });
    },
  },
  themeConfig: {
    search: {
      provider: "local",
      options: {
        // Decisions and tests come last among the results.
        miniSearch: { searchOptions: { boostDocument: (id) => (/\/(decisions|test)\//.test(id) ? 0.1 : 1) } },
      },
    },
    outline: { level: [2, 3] },
    socialLinks: [{ icon: "github", link: repository }],
    nav: [
      { text: "First steps", link: "/docs/first-steps/" },
      { text: "Configuration", link: "/docs/configuration" },
      { text: "Troubleshooting", link: "/docs/troubleshooting" },
    ],
    sidebar,
  },
};
