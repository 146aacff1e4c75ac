#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Finds words in comments, messages and documents that CONTRIBUTING.md excludes, prints each
# as FILE:LINE, and fails if there are any. Arguments limit the search to some paths.
set -euo pipefail

cd "$(dirname "$0")/.."

# files lists what is checked: not testdata, generated code, and the places that list the words.
files() {
  git ls-files --cached --others --exclude-standard -- "${@:-.}" |
    grep -E '(\.go|\.sh|\.mk|\.ya?ml|\.md|(^|/)Makefile)$' |
    grep -vE '(^|/)testdata/|^libs/gen/|^CONTRIBUTING\.md$|^test/words\.sh$'
}

# A phrase may begin on one line and end on the next, behind the marker of a comment.
mapfile -t checked < <(files "$@")
((${#checked[@]})) || exit 0
awk '
BEGIN {
  word = "(somebody|nobody|anybody|everybody|whoever|whomever|folders?)"
  phrase = "(those who|those that|be it|may yet|as good as|takes note|(says|tells) whether)"
  edge = "[^a-z0-9_.]" # http.NoBody is not a word
}
FNR == 1 { tail = "" }
{
  text = tolower($0)
  sub(/^[ \t]*(\/\/|#)[ \t]*/, "", text)
  here = " " text " "
  split_phrase = tail " " text " "
  if (here ~ edge word edge || here ~ edge phrase edge ||
      split_phrase ~ edge phrase edge && " " tail " " !~ edge phrase edge) {
    print FILENAME ":" FNR ": " $0
    found = 1
  }
  n = split(text, words, /[ \t]+/)
  tail = n > 1 ? " " words[n-1] " " words[n] : " " words[n]
}
END {
  if (found) {
    print "these words are not used in this repository: see CONTRIBUTING.md#words" >"/dev/stderr"
    exit 1
  }
}' "${checked[@]}"
