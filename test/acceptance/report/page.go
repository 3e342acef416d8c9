package main

import (
	"fmt"
	"strings"
)

const introduction = `# What docent was built against, and whether it holds

<!-- Written by test/acceptance/report: change the tests and run "make acceptance-page". -->

Users of ZooKeeper, and of services like it, have reported the same problems for many years: locks that are lost without
notice, nodes without an owner, calls that hang. docent started from a list of these, the worst first. This page has the
tests of its answers, and their results. A program writes it from the doc comments of the tests and the output of two
runs of [test/acceptance](../test/acceptance): *in process*, on the server of package [zktest](../zktest), often in
virtual time; and on a *real server*, ZooKeeper itself. Where a test is "not there" on one of them, that server cannot
do what the test needs.

` + "`make acceptance`" + ` runs both, and fails if a test fails or if this page does not match them.
` + "`make acceptance-page`" + ` writes the page.
`

// render returns the page.
func render(scenarios []scenario, inProcess, onReal *run) string {
	var page, rest strings.Builder
	page.WriteString(introduction)
	for i, p := range pains {
		var rows strings.Builder
		for _, s := range scenarios {
			if s.pain == i+1 {
				fmt.Fprintf(&rows, "| %s | `%s` | %s | %s |\n",
					cell(s.says), s.test, cell(inProcess.state(s.test)), cell(onReal.state(s.test)))
			}
		}
		if rows.Len() == 0 {
			fmt.Fprintf(&rest, "- P%d, %s: %s.\n", i+1, p.title, orElse(p.instead, "no tests yet"))
			continue
		}
		fmt.Fprintf(&page, "\n## P%d: %s\n\n| Scenario | Test | In process | Real server |\n|---|---|---|---|\n%s",
			i+1, p.title, &rows)
	}
	if rest.Len() > 0 {
		fmt.Fprintf(&page, "\n## Not here\n\n%s", &rest)
	}
	page.WriteString(renderCampaigns(campaigns))
	return page.String()
}

// cell returns text that does not end the cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
