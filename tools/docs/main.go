// Command docs writes the pages that are made from other files, and checks links and blocks of code. The argument after the
// root of the repository is one of:
//
//	errors    render docs/reference/errors.md to shared/openapi/reference/errors.html, which services serve
//	settings  fill the table in docs/reference/settings.md from the structs that programs load
//	links     print each wrong link or block of code as FILE:LINE, and exit with 1 if there is one
//
// The command opens no network connection: links to other hosts are not checked.
package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

func main() {
	part := map[string]func() error{"errors": writeErrors, "settings": writeSettings, "links": checkLinks}
	if len(os.Args) != 3 || part[os.Args[2]] == nil {
		fmt.Fprintln(os.Stderr, "usage: docs ROOT errors|settings|links")
		os.Exit(2)
	}
	err := os.Chdir(os.Args[1])
	if err == nil {
		err = part[os.Args[2]]()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// slugs returns an option with which headings get the same fragments as on GitHub. The fragments of goldmark would leave out
// underscores.
func slugs() parser.ParseOption {
	return parser.WithContext(parser.NewContext(parser.WithIDs(ids{})))
}

// ids generates fragments of headings. It has the number of headings of each text.
type ids map[string]int

// dropped matches the characters that GitHub leaves out of a heading's fragment.
var dropped = regexp.MustCompile(`[^\p{L}\p{M}\p{Nd} _-]`)

// Generate returns the fragment of a heading. A repeated heading gets a number. Generate implements [parser.IDs].
func (s ids) Generate(heading []byte, _ ast.NodeKind) []byte {
	slug := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(string(heading)), ""), " ", "-")
	n := s[slug]
	s[slug]++
	if n > 0 {
		slug = fmt.Sprintf("%s-%d", slug, n)
	}
	return []byte(slug)
}

// Put implements [parser.IDs] and does nothing, because Generate counts the headings.
func (ids) Put([]byte) {}

// head is the beginning of the HTML page of errors. The page needs no script and loads no other file.
const head = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Errors of the Lectern API</title>
<link rel="icon" href="data:,">
<style>
body { margin: 0 auto; max-width: 46rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color-scheme: light dark }
pre { overflow-x: auto; padding: .5rem; border: 1px solid #8884 }
td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }
h3:target { outline: 2px solid; outline-offset: .3rem }
</style>
</head>
<body>
`

// leaving matches a link that leaves the page. The server serves no other page, so the link becomes plain text.
var leaving = regexp.MustCompile(`\[([^\]]+)\]\([^#)][^)]*\)`)

func writeErrors() error {
	source, err := os.ReadFile("docs/reference/errors.md")
	if err != nil {
		return err
	}
	page := bytes.NewBufferString(head)
	if err := markdown.Convert(leaving.ReplaceAll(source, []byte("$1")), page, slugs()); err != nil {
		return err
	}
	page.WriteString("</body>\n</html>\n")
	return os.WriteFile("shared/openapi/reference/errors.html", page.Bytes(), 0o644)
}
