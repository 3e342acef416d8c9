package main

import (
	"regexp"
	"strings"
)

// pronouns are counted: they are for persons, and this module is about things.
var pronouns = wordPattern(
	"who", "whom", "whose",
	"whoever", "whomever", "whosever", "whosoever", "whichever one",
	"somebody", "anybody", "everybody", "nobody",
	"someone", "anyone", "everyone", "no one", "no-one", "noone",
)

// givenUp are words of this module's past. The field has a word for each; docs/glossary.md has it.
var givenUp = wordPattern(
	"tenure", "tenancy", "estate", "heir", "heirs", "bequeath", "forsake", "reign",
	"footing", "grip", "custody", "errand",
	"sentry", "lookout", "neighbor", "neighbors", "neighbour", "neighbours",
)

// wordPattern matches any of words in any case, as git grep -wi does: a letter, a digit or an
// underscore beside it makes it a part of another word. A space stands for any white space.
func wordPattern(words ...string) *regexp.Regexp {
	all := strings.ReplaceAll(strings.Join(words, "|"), " ", `\s+`)
	return regexp.MustCompile(`(?i)\b(?:` + all + `)\b`)
}
