// Package site holds the files of the web console that the build of services/console/web writes. The package knows the
// types of the files, and the files that never change. Package api serves the files over HTTP.
package site

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// dist holds the files that the build of services/console/web wrote to the folder dist.
//
//go:embed all:dist
var dist embed.FS

const (
	page   = "index.html"
	assets = "assets/" // where the build puts files whose names change with their content
)

// File is one file of the console, with the content that the build wrote.
type File struct {
	ContentType string
	Body        []byte
	// Immutable reports whether the file never changes under its name.
	Immutable bool
}

// Site holds the files of the console by their names. One of the files is the page, index.html.
type Site struct {
	files map[string]File
}

// Load returns the Site that is built into the program, with element at the end of the page's head. The error means that
// the build is faulty.
func Load(element string) (*Site, error) {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return load(files, element)
}

// load reads a Site from a file system. load refuses a Site without index.html, and files of unknown types.
func load(from fs.FS, element string) (*Site, error) {
	files := map[string]File{}
	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		contentType, known := contentTypes[path.Ext(name)]
		if !known {
			return fmt.Errorf("the console's file %s: the type of %q is not known", name, path.Ext(name))
		}
		body, err := fs.ReadFile(from, name)
		if name == page && element != "" {
			body = bytes.Replace(body, []byte("</head>"), []byte("  "+element+"\n  </head>"), 1)
		}
		files[name] = File{ContentType: contentType, Body: body, Immutable: strings.HasPrefix(name, assets)}
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, ok := files[page]; !ok {
		return nil, errors.New("the console has no " + page)
	}
	return &Site{files}, nil
}

// contentTypes maps the extension of a file to its Content-Type. The types of package mime would depend on the machine.
var contentTypes = map[string]string{
	".html":        "text/html; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".woff2":       "font/woff2",
	".webmanifest": "application/manifest+json",
	".txt":         "text/plain; charset=utf-8",
	".md":          "text/markdown; charset=utf-8",
}

// Find returns the file for a path below /console/, without a slash at its beginning. For a path without a file, Find
// returns the page, because the application in the page reads the path. For a missing asset, Find reports false, so
// that a page of another version does not load the page as a script.
func (s *Site) Find(path string) (File, bool) {
	if f, ok := s.files[path]; ok {
		return f, true
	}
	if strings.HasPrefix(path, assets) {
		return File{}, false
	}
	return s.files[page], true
}
