// Package site holds the files of the web console, as the build of services/console/web leaves them. It knows the types
// of the files and which of them never change; how they are served is not its concern.
package site

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed all:dist
var dist embed.FS

const (
	page   = "index.html"
	assets = "assets/" // where the build puts files whose names change with their content
)

// File is one file of the console.
type File struct {
	ContentType string
	Body        []byte
	// Immutable reports whether the file never changes under its name.
	Immutable bool
}

// Site is the console's files.
type Site struct {
	files map[string]File
}

// Load returns the site that is built into the program.
func Load() (*Site, error) {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return load(files)
}

// load reads a site. It refuses one without a page, and files of unknown types.
func load(from fs.FS) (*Site, error) {
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

// contentTypes are the types of files by the ends of their names. Those of package mime depend on the machine.
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

// Find returns the file to show at a path below the console's own, without a slash at its beginning. That is the page for
// all paths that are no file's: the application reads them itself. An asset that does not exist is not found, so that a
// page of another version does not take a page for a script.
func (s *Site) Find(path string) (File, bool) {
	if f, ok := s.files[path]; ok {
		return f, true
	}
	if strings.HasPrefix(path, assets) {
		return File{}, false
	}
	return s.files[page], true
}
