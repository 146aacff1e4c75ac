// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"regexp"
	"strings"
)

// passedOn matches prefixes of error messages, such as "resolve IMAGE: ". Servers that pass a registry's error on to
// fnctl add these prefixes. fnctl removes them, because its own error text already contains the image's name.
var passedOn = regexp.MustCompile(
	`^(?:unable to (?:get the [a-z ]+ for|evaluate) \S+(?: with pod evaluator)?: |resolve \S+: )+`)

// registryError matches an error about a registry, and captures the registry's name and the reason.
var registryError = regexp.MustCompile(`^registry (\S+): (?:[a-z ]+: )?((?s:.*))$`)

// gatewayAdvice matches the advice at the end of a gateway's error message. The advice begins with a word such as
// "check", and fnctl shows it on a separate line.
var gatewayAdvice = regexp.MustCompile(
	`: ((?:check|add|use|if it|renew|it has to|its certificate has|it refused|no credentials|the registry limits) .*)$`)

// pullCause is a known reason for a failed pull of an image, with texts for users.
type pullCause struct {
	pattern *regexp.Regexp
	// reason is the error text, with %s for the registry's name. local is the advice if functions run on this machine, and
	// remote is the advice if they run at a gateway.
	reason, local, remote string
}

// withoutBody is what follows the HTTP status of an answer without a body: nothing, or our advice. A body, such as the
// page of a proxy, tells more than our own words, so messages with a body are shown as they are.
const withoutBody = `[A-Za-z ]+($| \(|: no credentials|: check|: the registry)`

// pullCauses are the known reasons. The HTTP status is after "HTTP" if the registry's answer contains errors in JSON,
// and after "status code" if it has no body.
var pullCauses = []pullCause{
	{
		regexp.MustCompile(`no such host`), "no such host %s",
		"check the name, DNS and HTTPS_PROXY; with images pulled before, use --offline",
		"check the name, and that DNS and HTTPS_PROXY of the image-resolver (or function-runner) know it",
	},
	{
		regexp.MustCompile(`connection refused|i/o timeout|no route to host|network is unreachable|connection reset`),
		"%s cannot be reached",
		"check the name and HTTPS_PROXY; with images pulled before, use --offline",
		"check the name, and that proxies and network policies let the gateway reach it",
	},
	{
		regexp.MustCompile(`HTTP 429|status code 429 ` + withoutBody + `|TOOMANYREQUESTS`),
		"%s limits how often it may be asked",
		"try again later, or log in with 'docker login %s'", "try again later, or give the gateway credentials or a mirror",
	},
	{
		regexp.MustCompile(`HTTP 40[13]|status code 40[13] ` + withoutBody + `|UNAUTHORIZED|DENIED`),
		"%s requires credentials, or has no such image",
		"docker login %s, or check the image's name", "check the image's name, and the gateway's credentials",
	},
	{
		regexp.MustCompile(`HTTP 404|status code 404 ` + withoutBody + `|MANIFEST_UNKNOWN|NAME_UNKNOWN`),
		"%s has no such image or tag",
		"check the image's name and tag", "check the image's name and tag",
	},
}

// explainImage returns the reason and the remedy of a failed pull. ok reports whether message is about a failed pull.
func explainImage(image, message string, local bool) (problem, advice string, ok bool) {
	reason := passedOn.ReplaceAllString(message, "")
	if strings.Contains(reason, "registries are not called offline") {
		return fmt.Sprintf("cannot run %s: it was not pulled before, and --offline calls no registry", image),
			"fnctl images pull --image " + image, true
	}
	found := registryError.FindStringSubmatch(reason)
	if found == nil {
		return "", "", false
	}
	host, reason := found[1], found[2]
	for _, cause := range pullCauses {
		if cause.pattern.MatchString(reason) {
			advice = cause.remote
			if local {
				advice = cause.local
			}
			return fmt.Sprintf("cannot pull %s: %s", image, fmt.Sprintf(cause.reason, host)),
				strings.ReplaceAll(advice, "%s", host), true
		}
	}
	if at := gatewayAdvice.FindStringSubmatchIndex(reason); at != nil {
		reason, advice = reason[:at[0]], reason[at[2]:]
	}
	return fmt.Sprintf("cannot pull %s: %s: %s", image, host, reason), advice, true
}
