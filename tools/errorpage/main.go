// Command errorpage makes the page of errors, which is served next to the API's reference page. It is given the root of
// the repository, and renders docs/reference/errors.md. The id of each heading is its text, so that errors can link to the
// heading of their code. Links to other pages of the documentation become plain text.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// head is the beginning of the page. The page needs no script and loads nothing.
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

// headings makes the id of a heading: its text, in lower case, with dashes for spaces.
type headings struct{}

// Generate returns the id of a heading.
func (headings) Generate(value []byte, _ ast.NodeKind) []byte {
	return bytes.ReplaceAll(bytes.ToLower(value), []byte(" "), []byte("-"))
}

// Put does nothing, because the page has each heading once.
func (headings) Put([]byte) {}

func main() {
	root := os.Args[1]
	source, err := os.ReadFile(filepath.Join(root, "docs/reference/errors.md"))
	if err == nil {
		var page []byte
		if page, err = render(source); err == nil {
			err = os.WriteFile(filepath.Join(root, "shared/openapi/reference/errors.html"), page, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "errorpage:", err)
		os.Exit(1)
	}
}

func render(source []byte) ([]byte, error) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	document := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(headings{}))))
	var links []*ast.Link
	err := ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering && !strings.HasPrefix(string(link.Destination), "#") {
			links = append(links, link)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, child)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
	page := bytes.NewBufferString(head)
	if err := markdown.Renderer().Render(page, source, document); err != nil {
		return nil, err
	}
	page.WriteString("</body>\n</html>\n")
	return page.Bytes(), nil
}
