// Command configdoc writes the table of settings in a Markdown file. The settings are the fields of the structs that
// programs load. The table is between two marks. The first mark has a line for each struct: the program that reads the
// struct, its package's folder and its type's name.
//
//	<!-- configdoc
//	entries: services/entries/internal/api Config
//	-->
//	<!-- configdoc end -->
//
// Folders are relative to the working folder. With -check, configdoc changes nothing, and fails if a file is out of
// date.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "change nothing, and fail when a file is out of date")
	flag.Parse()
	if err := run(context.Background(), *check, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "configdoc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool, files []string) error {
	for _, file := range files {
		before, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		after, err := fill(ctx, string(before))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if bytes.Equal(before, []byte(after)) {
			continue
		}
		if check {
			return fmt.Errorf("%s is out of date: run make generate", file)
		}
		if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
			return err
		}
	}
	return nil
}

const (
	beginMark = "<!-- configdoc\n"
	endOfMark = "-->\n"
	endMark   = "<!-- configdoc end -->"
)

// fill returns text with a fresh table between its marks. The error reports a missing mark, or a struct that cannot be
// read.
func fill(ctx context.Context, text string) (string, error) {
	before, rest, ok := strings.Cut(text, beginMark)
	if !ok {
		return "", fmt.Errorf("%q is missing", beginMark)
	}
	sources, rest, ok := strings.Cut(rest, endOfMark)
	if !ok {
		return "", fmt.Errorf("%q is missing after %q", endOfMark, beginMark)
	}
	_, after, ok := strings.Cut(rest, endMark)
	if !ok {
		return "", fmt.Errorf("%q is missing", endMark)
	}
	settings, err := settingsOf(ctx, sources)
	if err != nil {
		return "", err
	}
	return before + beginMark + sources + endOfMark + table(settings) + endMark + after, nil
}

// setting is one row of the table: a variable, and the programs that read the variable.
type setting struct {
	variable
	readers []string // in the order of the mark
}

// settingsOf returns the settings of all programs in sources, the text of the first mark, sorted by name. Programs that
// read the same variable with the same meaning and default share a setting.
func settingsOf(ctx context.Context, sources string) ([]setting, error) {
	var settings []setting
	for line := range strings.Lines(sources) {
		reader, source, ok := strings.Cut(strings.TrimSpace(line), ": ")
		folder, typeName, ok2 := strings.Cut(source, " ")
		if !ok || !ok2 {
			return nil, fmt.Errorf("%q does not have the form \"program: folder Type\"", line)
		}
		variables, err := variablesOf(ctx, folder, typeName)
		if err != nil {
			return nil, err
		}
		for _, v := range variables {
			i := slices.IndexFunc(settings, func(s setting) bool { return s.variable == v })
			if i < 0 {
				i = len(settings)
				settings = append(settings, setting{variable: v})
			}
			settings[i].readers = append(settings[i].readers, reader)
		}
	}
	slices.SortStableFunc(settings, func(a, b setting) int { return cmp.Compare(a.name, b.name) })
	return settings, nil
}

// table returns the settings as a Markdown table with a row for each setting.
func table(settings []setting) string {
	var b strings.Builder
	b.WriteString("\n| Setting | Read by | Default | Meaning |\n|---|---|---|---|\n")
	for _, s := range settings {
		name := "`" + s.name + "`"
		if s.secret {
			name += " (secret)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, strings.Join(s.readers, ", "), s.byDefault, strings.ReplaceAll(s.meaning, "|", `\|`))
	}
	b.WriteByte('\n')
	return b.String()
}
