package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// link is a reference to a tracked file, from a Markdown page or by its path in another file.
type link struct {
	place  string // FILE:LINE
	target string // a path from the root of the repository, and # and a heading if it names one of a page
}

// block is a block of code in a tutorial or how-to, with the HTML comment above the block, which names its test.
type block struct{ place, language, comment string }

// content has what the files of the repository contain.
type content struct {
	known  map[string]bool // files and folders, and PAGE#FRAGMENT for each heading
	tests  map[string]bool // Go test functions
	links  []link
	blocks []block
}

var (
	test = regexp.MustCompile(`(?m)^func (Test\w*)\(`)

	// mention matches a page that a file other than Markdown names by its path from the root.
	mention = regexp.MustCompile(`\bdocs/[a-zA-Z0-9/_-]+\.md(?:#[a-z0-9_-]+)?`)

	// anchor matches an HTML anchor in Markdown, whose id can be the fragment of a link.
	anchor = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)

	runBy  = regexp.MustCompile(`^<!-- run by (\S+) -->$`)
	notRun = regexp.MustCompile(`^<!-- not run: \S.* -->$`)
)

// checkLinks returns the faults in the files that git tracks:
//
//   - In Markdown, each relative link and image names a tracked file or folder, and its fragment a heading there.
//   - In other files, each path that begins with docs/ and ends with .md names a page, and its fragment a heading.
//   - In tutorials and how-tos, each block of code names its language. Each block of shell commands has a comment above it.
//     The comment names the test that runs the block ("run by", then a Go test or a tracked file). Or the comment gives
//     the reason why no test does ("not run:", a reason).
func checkLinks() error {
	tracked, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		return fmt.Errorf("list the tracked files: %w", err)
	}
	c := content{known: map[string]bool{".": true}, tests: map[string]bool{}}
	for file := range strings.SplitSeq(strings.TrimRight(string(tracked), "\x00"), "\x00") {
		source, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		for folder := file; folder != "."; folder = path.Dir(folder) {
			c.known[folder] = true
		}
		switch {
		case err != nil, strings.Contains(file, "testdata/"): // an error: a symbolic link to a folder
		case path.Ext(file) == ".md":
			c.addPage(file, source)
		case !bytes.ContainsRune(source, 0):
			for _, at := range mention.FindAllIndex(source, -1) {
				c.links = append(c.links, link{place(file, source, at[0]), string(source[at[0]:at[1]])})
			}
			if strings.HasSuffix(file, "_test.go") {
				for _, found := range test.FindAllSubmatch(source, -1) {
					c.tests[string(found[1])] = true
				}
			}
		}
	}
	var faults []error
	for _, l := range c.links {
		if !c.known[l.target] {
			faults = append(faults, fmt.Errorf("%s: there is no %s", l.place, l.target))
		}
	}
	for _, b := range c.blocks {
		m := runBy.FindStringSubmatch(b.comment)
		switch {
		case b.language == "":
			faults = append(faults, fmt.Errorf("%s: the block has no fence that names its language", b.place))
		case b.language != "sh":
		case m != nil && !c.tests[m[1]] && !c.known[m[1]]:
			faults = append(faults, fmt.Errorf("%s: %s, which runs the block, is neither a test nor a file", b.place, m[1]))
		case m == nil && !notRun.MatchString(b.comment):
			faults = append(faults, fmt.Errorf("%s: no comment \"<!-- run by TEST -->\" or \"<!-- not run: REASON -->\" stands above the block", b.place))
		}
	}
	return errors.Join(faults...)
}

// addPage adds the headings, links and blocks of code of a Markdown file.
func (c *content) addPage(file string, source []byte) {
	for _, found := range anchor.FindAllSubmatch(source, -1) {
		c.known[file+"#"+string(found[1])] = true
	}
	guide := strings.HasPrefix(file, "docs/tutorials/") || strings.HasPrefix(file, "docs/how-to/")
	_ = ast.Walk(markdown.Parser().Parse(text.NewReader(source), slugs()), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		b := block{place: place(file, source, start(n))}
		switch n := n.(type) {
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); ok {
				c.known[fmt.Sprintf("%s#%s", file, id)] = true
			}
		case *ast.FencedCodeBlock:
			b.language = string(n.Language(source))
			if comment, ok := n.PreviousSibling().(*ast.HTMLBlock); ok {
				b.comment = strings.TrimSpace(string(comment.Lines().Value(source)))
			}
		case *ast.Link:
			c.addLink(b.place, file, n.Destination)
		case *ast.Image:
			c.addLink(b.place, file, n.Destination)
		}
		if k := n.Kind(); guide && (k == ast.KindFencedCodeBlock || k == ast.KindCodeBlock) {
			c.blocks = append(c.blocks, b)
		}
		return ast.WalkContinue, nil
	})
}

// addLink adds a link of the Markdown file to destination, unless the link has a scheme or a host, or cannot be parsed.
func (c *content) addLink(place, file string, destination []byte) {
	u, err := url.Parse(string(destination))
	if err != nil || u.Scheme != "" || u.Host != "" {
		return
	}
	target := file
	if u.Path != "" {
		target = path.Join(path.Dir(file), u.Path)
	}
	if u.Fragment != "" && path.Ext(target) == ".md" {
		target += "#" + u.Fragment
	}
	c.links = append(c.links, link{place, target})
}

// place returns the file and the line of the byte at offset.
func place(file string, source []byte, offset int) string {
	return fmt.Sprintf("%s:%d", file, 1+bytes.Count(source[:offset], []byte("\n")))
}

// start returns the offset of the first line of text of the block that contains n.
func start(n ast.Node) int {
	for ; n != nil; n = n.Parent() {
		if n.Type() == ast.TypeBlock && n.Lines().Len() > 0 {
			return n.Lines().At(0).Start
		}
	}
	return 0
}
