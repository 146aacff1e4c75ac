// SPDX-License-Identifier: Apache-2.0

package imagename

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Pattern is a pattern of image repositories, for settings such as allow lists. "*" matches any text without a
// slash, and "**" matches any text. For example, ghcr.io/example/** matches all repositories below ghcr.io/example.
type Pattern struct{ expr *regexp.Regexp }

// ParsePattern parses a pattern. It makes the pattern's registry canonical, so that a pattern for index.docker.io
// also matches images of docker.io.
func ParsePattern(text string) (Pattern, error) {
	if text == "" || strings.ContainsAny(text, " @") {
		return Pattern{}, fmt.Errorf("%q is not a pattern of repositories, such as ghcr.io/example/**", text)
	}
	if err := checkRepository(text); err != nil {
		return Pattern{}, err
	}
	expr := regexp.QuoteMeta(CanonicalRepository(text))
	expr = strings.ReplaceAll(expr, `\*\*`, `.*`)
	expr = strings.ReplaceAll(expr, `\*`, `[^/]*`)
	compiled, err := regexp.Compile("(?s)^" + expr + "$") // (?s) lets "**" match line ends
	if err != nil {
		return Pattern{}, fmt.Errorf("pattern %q: %w", text, err)
	}
	return Pattern{expr: compiled}, nil
}

// checkRepository returns an error for a pattern that cannot match any repository, because a rule with this pattern
// would have no effect.
func checkRepository(pattern string) error {
	host, path, ok := strings.Cut(strings.ToLower(pattern), "/")
	isHost := ok && (host == "localhost" || strings.ContainsAny(host, "*.:"))
	var remedy string
	switch {
	case !isHost && !strings.Contains(host, "**"):
		remedy = "begin it with the registry, as docker.io/example/fn, or with **/"
	case strings.Contains(path, ":"):
		remedy = "leave the tag out"
	case strings.HasSuffix(pattern, "/"):
		remedy = "end it with ** or with the name of an image"
	case CanonicalRegistry(host) == Hub && ok && !strings.Contains(path, "/") && !strings.Contains(path, "**"):
		remedy = "official images are docker.io/library/NAME"
	default:
		return nil
	}
	return fmt.Errorf("pattern %q matches no repository: %s", pattern, remedy)
}

// Match reports whether the pattern matches a repository in canonical spelling.
func (p Pattern) Match(repository string) bool { return p.expr.MatchString(repository) }

// Patterns is a list of patterns. It matches an image if any of the patterns matches the image's repository. An
// empty list matches no image.
type Patterns []Pattern

// ParsePatterns parses a list of patterns. It returns the error of the first invalid pattern.
func ParsePatterns(list []string) (Patterns, error) {
	var patterns Patterns
	for _, text := range list {
		p, err := ParsePattern(text)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// Match reports whether a pattern of the list matches an image's repository. It first makes the registry canonical, so
// that it treats all names of a registry, such as index.docker.io, alike.
func (ps Patterns) Match(name Name) bool {
	repository := CanonicalRepository(name.Repository)
	return slices.ContainsFunc(ps, func(p Pattern) bool { return p.Match(repository) })
}

// CanonicalRepository returns the canonical spelling of a repository or of a pattern. Without it, users could evade a
// rule for docker.io with another name of this registry, such as index.docker.io.
func CanonicalRepository(repository string) string {
	host, path, ok := strings.Cut(strings.ToLower(repository), "/")
	if !ok {
		return host
	}
	return CanonicalRegistry(host) + "/" + path
}

// Hub is the canonical name of Docker Hub, a registry that has several host names.
const Hub = "docker.io"

var hubHosts = []string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// CanonicalRegistry returns the canonical name of a registry, given as host or host:port. We compare registries by
// this name, because settings, rules, credentials and requests may spell a registry differently. The name is in lower
// case and without the default port 443. All hosts of Docker Hub become docker.io. An IP address gets its shortest
// form. The port loses leading zeros, because connections ignore them.
func CanonicalRegistry(hostport string) string {
	host, port := splitPort(strings.ToLower(hostport))
	host, port = canonicalAddress(host), strings.TrimLeft(port, "0")
	if slices.Contains(hubHosts, host) {
		host = Hub
	}
	if port == "" || port == "443" {
		return host
	}
	return host + ":" + port
}

// splitPort splits host:port. If the host part would contain a colon, splitPort returns the whole text as the host,
// because the text is an IPv6 address without a port, or invalid.
func splitPort(hostport string) (host, port string) {
	i := strings.LastIndexByte(hostport, ':')
	if i < 0 || strings.HasSuffix(hostport, "]") {
		return hostport, ""
	}
	if host = hostport[:i]; strings.Contains(host, ":") && !strings.HasSuffix(host, "]") {
		return hostport, ""
	}
	return host, hostport[i+1:]
}

// canonicalAddress returns the shortest form of an IP address. It returns all other hosts unchanged.
func canonicalAddress(host string) string {
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return host
	}
	if address = address.Unmap(); address.Is4() {
		return address.String()
	}
	return "[" + address.String() + "]"
}
