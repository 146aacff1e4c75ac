// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"slices"
	"strings"
)

// authenticate is the header with a registry's challenges.
const authenticate = "Www-Authenticate"

// separateChallenges gives each challenge of an answer its own header, Bearer first: the library reads one challenge
// from each header, and takes the first that it knows.
func separateChallenges(header http.Header) {
	var challenges []string
	for _, part := range splitHeader(header.Values(authenticate), ',') {
		if len(challenges) == 0 || beginsChallenge(part) {
			challenges = append(challenges, part)
		} else {
			challenges[len(challenges)-1] += "," + part
		}
	}
	slices.SortStableFunc(challenges, func(a, b string) int { return rank(a) - rank(b) })
	if len(challenges) > 0 {
		header[authenticate] = challenges
	}
}

// beginsChallenge reports whether a part of a header begins with a scheme: other parts are parameters.
func beginsChallenge(part string) bool {
	scheme, rest, _ := strings.Cut(part, " ")
	return !strings.Contains(scheme, "=") && !strings.HasPrefix(strings.TrimSpace(rest), "=")
}

// rank orders challenges.
func rank(challenge string) int {
	if scheme, _, _ := strings.Cut(challenge, " "); strings.EqualFold(scheme, "bearer") {
		return 0
	}
	return 1
}

// lateChallenge returns the challenges of an answer of a registry whose ping required none, or nil.
func (g *guard) lateChallenge(req *http.Request, resp *http.Response) []string {
	if g.late != nil || g.pingChallenged || resp.StatusCode != http.StatusUnauthorized || req.URL.Host != g.host ||
		operation(req) == opPing {
		return nil
	}
	return resp.Header.Values(authenticate)
}

// answerPing returns the answer to a ping that a registry would have given with the challenges that it sent later.
func (g *guard) answerPing(req *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusUnauthorized, Status: "401 Unauthorized", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{authenticate: g.late}, Body: http.NoBody, Request: req,
	}
}
