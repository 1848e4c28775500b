// Command doclinks checks the documentation of the repository whose root is its argument. The command reads all files
// that git tracks, and checks:
//
//   - In Markdown, each relative link and image names a tracked file or folder, and its fragment a heading there.
//   - In other files, each path that begins with docs/ and ends with .md names a page, and its fragment a heading.
//   - In tutorials and how-tos, each block of code names its language. Each block of shell commands has a comment
//     above it. The comment names the test that runs the block ("run by", then a Go test or a tracked file). Or the
//     comment gives the reason why no test does ("not run:", a reason).
//
// The command prints each fault as FILE:LINE, and exits with 1 if there is one. The command opens no network
// connection: links to other hosts are not checked.
package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: doclinks ROOT")
		os.Exit(2)
	}
	faults, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "doclinks:", err)
		os.Exit(2)
	}
	for _, f := range faults {
		fmt.Println(f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// link is a reference to a tracked file, from a Markdown page or by its path in another file.
type link struct {
	file     string // the file that contains the link
	line     int
	target   string // path from the root of the repository
	fragment string // "" for none
}

// commands is a block of code in a tutorial or how-to, with the comment that names its test.
type commands struct {
	file     string
	line     int
	language string // "" for an indented block
	comment  string // the HTML comment above the block, or ""
}

// check returns the faults in the documentation of the repository at root, each as FILE:LINE and a text. check changes
// the working folder to root.
func check(root string) ([]string, error) {
	if err := os.Chdir(root); err != nil {
		return nil, err
	}
	tracked, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		return nil, fmt.Errorf("list the tracked files: %w", err)
	}
	known := map[string]bool{".": true} // files and folders
	headings := map[string]map[string]bool{}
	var links []link
	var blocks []commands
	tests := map[string]bool{} // Go test functions
	for _, file := range strings.Split(strings.TrimRight(string(tracked), "\x00"), "\x00") {
		source, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		for folder := file; folder != "."; folder = path.Dir(folder) {
			known[folder] = true
		}
		switch {
		case err != nil:
			continue // a symbolic link to a folder
		case strings.Contains(file, "testdata/"):
		case path.Ext(file) == ".md":
			page := parse(file, source)
			headings[file] = page.headings
			links = append(links, page.links...)
			if strings.HasPrefix(file, "docs/tutorials/") || strings.HasPrefix(file, "docs/how-to/") {
				blocks = append(blocks, page.blocks...)
			}
		case !bytes.ContainsRune(source, 0):
			links = append(links, mentions(file, source)...)
			if strings.HasSuffix(file, "_test.go") {
				for _, found := range test.FindAllSubmatch(source, -1) {
					tests[string(found[1])] = true
				}
			}
		}
	}
	var faults []string
	for _, l := range links {
		switch {
		case !known[l.target]:
			faults = append(faults, fmt.Sprintf("%s:%d: %s does not exist", l.file, l.line, l.target))
		case l.fragment != "" && headings[l.target] != nil && !headings[l.target][l.fragment]:
			faults = append(faults, fmt.Sprintf("%s:%d: %s has no heading #%s", l.file, l.line, l.target, l.fragment))
		}
	}
	for _, b := range blocks {
		if fault := b.fault(known, tests); fault != "" {
			faults = append(faults, fmt.Sprintf("%s:%d: %s", b.file, b.line, fault))
		}
	}
	return faults, nil
}

var (
	test   = regexp.MustCompile(`(?m)^func (Test\w*)\(`)
	runBy  = regexp.MustCompile(`^<!-- run by (\S+) -->$`)
	notRun = regexp.MustCompile(`^<!-- not run: \S.* -->$`)
)

// fault returns what is wrong with the block or its comment, or "" if nothing is. Only a block of shell commands needs
// a comment. files has the tracked files, and tests the Go test functions.
func (c commands) fault(files, tests map[string]bool) string {
	m := runBy.FindStringSubmatch(c.comment)
	switch {
	case c.language == "":
		return "the block has no fence that names its language"
	case c.language != "sh":
		return ""
	case m != nil && !tests[m[1]] && !files[m[1]]:
		return fmt.Sprintf("%s, which runs the block, is neither a test nor a file", m[1])
	case m == nil && !notRun.MatchString(c.comment):
		return `no comment "<!-- run by TEST -->" or "<!-- not run: REASON -->" stands above the block`
	}
	return ""
}

// page has the headings, links and blocks of code of a Markdown file.
type page struct {
	headings map[string]bool // by fragment
	links    []link
	blocks   []commands
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// anchor matches an HTML anchor in Markdown, whose id can be the fragment of a link.
var anchor = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)

// parse returns the headings, links and blocks of code in source, the content of the Markdown file file.
func parse(file string, source []byte) page {
	p := page{headings: map[string]bool{}}
	for _, found := range anchor.FindAllSubmatch(source, -1) {
		p.headings[string(found[1])] = true
	}
	root := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(slugs{}))))
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); ok {
				p.headings[string(id.([]byte))] = true
			}
		case *ast.FencedCodeBlock:
			block := commands{file: file, line: lineOf(source, n), language: string(n.Language(source))}
			if comment, ok := n.PreviousSibling().(*ast.HTMLBlock); ok {
				block.comment = strings.TrimSpace(string(comment.Lines().Value(source)))
			}
			p.blocks = append(p.blocks, block)
		case *ast.CodeBlock:
			p.blocks = append(p.blocks, commands{file: file, line: lineOf(source, n)})
		case *ast.Link:
			p.add(file, source, n, n.Destination)
		case *ast.Image:
			p.add(file, source, n, n.Destination)
		}
		return ast.WalkContinue, nil
	})
	return p
}

// slugs generates the fragments of headings as GitHub does. The generator of goldmark would leave out underscores.
type slugs map[string]int // how many headings have the text

// dropped matches the characters that GitHub leaves out of a heading's fragment.
var dropped = regexp.MustCompile(`[^\p{L}\p{M}\p{Nd} _-]`)

// Generate returns the fragment of a heading. A repeated heading gets a number. Generate implements [parser.IDs].
func (s slugs) Generate(heading []byte, _ ast.NodeKind) []byte {
	slug := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(string(heading)), ""), " ", "-")
	n := s[slug]
	s[slug]++
	if n > 0 {
		slug = fmt.Sprintf("%s-%d", slug, n)
	}
	return []byte(slug)
}

// Put implements [parser.IDs] and does nothing, because Generate counts the headings.
func (slugs) Put([]byte) {}

// add adds a link of the Markdown file to p, unless the link has a scheme or a host, or cannot be parsed. n is the node
// of the link in source.
func (p *page) add(file string, source []byte, n ast.Node, destination []byte) {
	u, err := url.Parse(string(destination))
	if err != nil || u.Scheme != "" || u.Host != "" {
		return
	}
	target := file
	if u.Path != "" {
		target = path.Join(path.Dir(file), u.Path)
	}
	p.links = append(p.links, link{file, lineOf(source, n), target, u.Fragment})
}

// lineOf returns the number of the first line of text of the block that contains n. The first line is 1.
func lineOf(source []byte, n ast.Node) int {
	for ; n != nil; n = n.Parent() {
		if n.Type() == ast.TypeBlock && n.Lines().Len() > 0 {
			return 1 + bytes.Count(source[:n.Lines().At(0).Start], []byte("\n"))
		}
	}
	return 1
}

var mention = regexp.MustCompile(`\bdocs/([a-zA-Z0-9/_-]+\.md)(?:#([a-z0-9_-]+))?`)

// mentions returns the documentation pages that a file other than Markdown names by their path from the root.
func mentions(file string, source []byte) []link {
	var links []link
	for i, line := range strings.Split(string(source), "\n") {
		for _, found := range mention.FindAllStringSubmatch(line, -1) {
			links = append(links, link{file, i + 1, "docs/" + found[1], found[2]})
		}
	}
	return links
}
