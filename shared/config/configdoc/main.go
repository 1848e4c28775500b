// Command configdoc keeps the tables of variables in Markdown files equal to the structs that services load them
// into. It writes a table between two marks. The first mark names a folder and the type of the struct in its package:
//
//	<!-- configdoc services/entries/app Config -->
//	<!-- configdoc end -->
//
// Folders are relative to the working folder. With -check it changes nothing, and fails if a file differs from what
// it would write.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
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
	beginMark = "<!-- configdoc "
	endMark   = "<!-- configdoc end -->"
)

// fill returns text with a fresh table between each pair of marks.
func fill(ctx context.Context, text string) (string, error) {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		mark := strings.TrimSpace(line)
		switch {
		case mark == endMark:
			if !inside {
				return "", fmt.Errorf("a mark ends what did not begin")
			}
			inside = false
			out.WriteString(line)
		case inside && strings.HasPrefix(mark, beginMark):
			return "", fmt.Errorf("%q stands where %q is missing", mark, endMark)
		case strings.HasPrefix(mark, beginMark):
			folder, typeName, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(mark, beginMark), " -->"), " ")
			if !ok {
				return "", fmt.Errorf("%q names no folder and type", mark)
			}
			variables, err := variablesOf(ctx, folder, typeName)
			if err != nil {
				return "", err
			}
			out.WriteString(line)
			out.WriteString(table(variables))
			inside = true
		case !inside:
			out.WriteString(line)
		}
	}
	if inside {
		return "", fmt.Errorf("%q is missing", endMark)
	}
	return out.String(), nil
}

// table returns the variables as a Markdown table.
func table(variables []variable) string {
	var b strings.Builder
	b.WriteString("\n| Variable | Meaning | Default |\n|---|---|---|\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.name, strings.ReplaceAll(v.meaning, "|", `\|`), v.byDefault)
	}
	b.WriteByte('\n')
	return b.String()
}
