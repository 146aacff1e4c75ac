// SPDX-License-Identifier: Apache-2.0

package main

import "regexp"

// form is a kind of sentence or name that CONTRIBUTING.md discourages.
type form struct {
	name string
	// goal is the maximum number of occurrences per 100 or 1000 lines, words, names or commits. per is 100 or 1000.
	goal, per float64
	// pattern matches a text with the discouraged form. It is nil for a form that is not recognized by a pattern.
	pattern *regexp.Regexp
}

func perThousand(name string, goal float64, pattern string) form {
	return form{name, goal, 1000, regexp.MustCompile(`(?i)` + pattern)}
}

func perHundred(name string, goal float64, pattern string) form {
	return form{name, goal, 100, regexp.MustCompile(pattern)}
}

// commentForms are the discouraged forms in comments, counted per comment line. The goals are 1.25 to 5 times the
// highest rate among eight well-known Go projects.
var commentForms = []form{
	perThousand("definition by clause", 6,
		`\b(is|are|was|were) (what|how|when|where|who|whose|whom|why|whether|since when|until when)\b`),
	perThousand("clause in place of a noun", 12, `\bwhat\b`),
	perThousand("indirect question", 100, `\b(whether|why|how|which)\b`),
	perThousand("pronoun in place of a noun", 50, `\b(one|ones|another one|the other|others)\b`),
	perThousand("pronoun with of", 5, `\b(that|those) of\b`),
	perThousand("have", 90, `\b(has|have|had)\b`),
	perThousand("have to", 8, `\b(has|have|had) to\b`),
	perThousand("passive without an agent", 1.5,
		`\b(is|are|was|were|be|been) (told|asked|said|waited|looked|meant|taken for)\b`),
	perThousand("calque", 6,
		`\b(in force|beside|at a time|any more|go(es)? on|meanwhile|in place of|likewise|at last|as ever|anew|lately)\b`),
	perThousand("everyday verb", 60, `\b(asks?|asked|takes?|taken|ends?|ended|comes?|knows?|known)\b`),
	perThousand("zero value as a tail", 5, `[;,] (nil|empty|zero|none|0|false) (if|for|while|without|until|unless)\b`),
}

// documentForms are the discouraged forms in documents, counted per word.
var documentForms = []form{
	perThousand("clause in place of a noun", 2, `\bwhat\b`),
	perThousand("pronoun with of", 0.1, `\b(that|those) of\b`),
	perThousand("have", 5, `\b(has|have|had)\b`),
	perThousand("pronoun in place of a noun", 4, `\b(one|ones|another one|the other|others)\b`),
}

var (
	fragment = perHundred("trailing comment without a noun", 15,
		`(?i)^(it|they|this|that|which|who|one|some|others|of|by|for|with|in|on|as|or|and|nor|also|else|until|since|so|`+
			`none|from|at|to)\b`)
	oneWordFunction = perHundred("function of one word", 35, `^[a-z0-9]+$`)
	participleType  = perHundred("type named by a participle", 0, `^(held|kept|known|seen|lent|told|left|[a-z]+ed)$`)
	nounSubject     = perHundred("commit subject without a verb", 5,
		`^(a|an|the|all|each|one|what|no|some|this|other|further|its|[a-z]+s) `)
	plainSubject = form{"commit subject without an area", 1, 100, nil} // 0 is impossible: old subjects cannot change
)

// count contains two numbers of units, such as lines, words, names or commits. found is the number of units with a
// discouraged form. of is the number of all units.
type count struct {
	found, of int
}

func (c *count) addUnit(f form, text string) {
	c.of++
	if f.pattern.MatchString(text) {
		c.found++
	}
}

// reachesGoal reports whether the form occurs at most as often as its goal permits.
func (c count) reachesGoal(f form) bool {
	return float64(c.found)*f.per <= f.goal*float64(c.of)
}
