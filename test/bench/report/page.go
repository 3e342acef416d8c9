package report

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed page.md.tmpl
var prose string

// section is the part of the page on one setting.
type section struct {
	Setting Setting
	Plots   []Plot
	Tables  []Table
}

// Write writes benchmarks.md into a folder, and its plots below.
func (r *Report) Write(folder string) error {
	const plots = "benchmarks"
	old, err := filepath.Glob(filepath.Join(folder, plots, "*.svg"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	var sections []section
	for _, s := range r.Settings {
		drawn, err := r.Plots(s.Name, filepath.Join(folder, plots))
		if err != nil {
			return err
		}
		sections = append(sections, section{s, drawn, r.Results(s.Name)})
	}
	page, err := template.New("page").Parse(prose)
	if err != nil {
		return err
	}
	var b strings.Builder
	err = page.Execute(&b, map[string]any{
		"Facts": r.Facts, "Targets": r.Targets(), "Asked": r.Asked(), "Requests": r.Requests, "Sections": sections,
		"Folder": plots,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "benchmarks.md"), []byte(b.String()), 0o644)
}
