# shellcheck shell=bash
# Processor time, for scripts that source this: what other programs do at the same time does not count.

# Puts into REPLY the hundredths of seconds that the ended children of this shell took, and theirs.
spent() {
  local words
  # The name of the program, which may have blanks, stands between parentheses.
  read -r REPLY <"/proc/$BASHPID/stat"
  read -r -a words <<<"${REPLY##*) }"
  REPLY=$((words[13] + words[14]))
}
