// Command errorpage makes the HTML page of errors, which the server shows next to the API's reference page. The
// argument is the root of the repository. The command renders docs/reference/errors.md to
// shared/openapi/reference/errors.html. The id of each heading comes from its text, so that errors can link to the
// heading of their code. Links that leave the page become plain text.
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

// head is the beginning of the HTML page. The page needs no script and loads no other file.
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

// headings makes the ids of headings: the text of the heading, in lower case, with dashes for spaces.
type headings struct{}

// Generate returns the id of a heading with the text value. Generate implements goldmark's interface for ids.
func (headings) Generate(value []byte, _ ast.NodeKind) []byte {
	return bytes.ReplaceAll(bytes.ToLower(value), []byte(" "), []byte("-"))
}

// Put does nothing: the headings of the page must have different texts.
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
