// Package site holds the files of the web console that the build of services/console/web writes. The package knows the
// types of the files, and the files that never change. Package api serves the files over HTTP.
package site

import (
	"bytes"
	"crypto/sha256"
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

// Root is the path below which the files are served.
const Root = "/console/"

const (
	page   = "index.html"
	assets = "assets/" // where the build puts the files that the page loads
)

// File is one file of the console, with the content that the build wrote.
type File struct {
	ContentType string
	Body        []byte
	// Immutable reports whether the file never changes under its path.
	Immutable bool
}

// Site holds the files of the console by their paths below Root. One of the files is the page, index.html. The assets are
// in a folder that is named after the hash of all of them. The folder makes an asset immutable under its path, together
// with the assets that it loads by relative addresses.
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
	hash := sha256.New()
	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		contentType, known := contentTypes[path.Ext(name)]
		if !known {
			return fmt.Errorf("the console's file %s: the type of %q is not known", name, path.Ext(name))
		}
		body, err := fs.ReadFile(from, name)
		files[name] = File{ContentType: contentType, Body: body}
		if strings.HasPrefix(name, assets) {
			fmt.Fprintf(hash, "%s %d\n%s", name, len(body), body)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	index, ok := files[page]
	if !ok {
		return nil, errors.New("the console has no " + page)
	}
	folder := fmt.Sprintf("%s%x/", assets, hash.Sum(nil)[:8])
	s := &Site{map[string]File{}}
	for name, f := range files {
		if file, ok := strings.CutPrefix(name, assets); ok {
			name, f.Immutable = folder+file, true
		}
		s.files[name] = f
	}
	// The page has many addresses, so that it needs the absolute ones of its assets.
	index.Body = bytes.ReplaceAll(index.Body, []byte(`"./`+assets), []byte(`"`+Root+folder))
	if element != "" {
		index.Body = bytes.Replace(index.Body, []byte("</head>"), []byte("  "+element+"\n  </head>"), 1)
	}
	s.files[page] = index
	return s, nil
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

// Find returns the file for a path below Root, without a slash at its beginning. For a path without a file, Find
// returns the page, because the application in the page reads the path. For an asset of another build, Find reports
// false. So no cache keeps this build's file under the address of the other, and no page loads the page as a script.
func (s *Site) Find(path string) (File, bool) {
	if f, ok := s.files[path]; ok {
		return f, true
	}
	if strings.HasPrefix(path, assets) {
		return File{}, false
	}
	return s.files[page], true
}
