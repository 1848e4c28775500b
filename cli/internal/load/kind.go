package load

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// kinds are the forms of files that hold no records as text, by their first bytes, each with what the user can do.
var kinds = []struct{ start, advice string }{
	{"\xd0\xcf\x11\xe0", errWorkbook},
	{"\x1f\x8b", "the file is compressed: zcat FILE | lectern import … -"},
	{"%PDF-", "the file is a PDF: export the answers as CSV"},
	{"PAR1\x15", "the file is Parquet: write its rows as NDJSON or CSV"},
	{"<!doctype", errPage}, {"<html", errPage}, {"<?xml", errPage},
	{"[{", "the file is an array of JSON: jq -c '.[]' FILE | lectern import … -"},
}

const (
	errWorkbook = "the file is a workbook of a spreadsheet: save its sheet as \"CSV UTF-8\" there, and import that"
	errPage     = "the file is a page of the web or XML: export the answers as CSV, and see that you are signed in there"
	errZip      = "the file is a zip: unzip -p FILE | lectern import … -"
)

// text returns a reader of in if its first bytes are those of text, and otherwise an error that says what to do. For a
// zip on the disk with one file, text returns a reader of that file.
func text(in io.Reader, size int) (*bufio.Reader, error) {
	buffered := bufio.NewReaderSize(in, size)
	start, _ := buffered.Peek(4096)
	plain := strings.ToLower(strings.Join(strings.Fields(string(bytes.TrimPrefix(start, byteOrderMark))), ""))
	for _, k := range kinds {
		if bytes.HasPrefix(start, []byte(k.start)) || strings.HasPrefix(plain, k.start) {
			return nil, errors.New(k.advice)
		}
	}
	if !bytes.HasPrefix(start, []byte("PK\x03\x04")) {
		return buffered, nil
	}
	file, ok := in.(*os.File)
	if !ok {
		return nil, errors.New(errZip)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("the file is a damaged zip (%w): export it again", err)
	}
	var names []string
	var only *zip.File
	for _, f := range z.File {
		switch {
		case f.Name == "[Content_Types].xml", f.Name == "content.xml":
			return nil, errors.New(errWorkbook)
		case !f.FileInfo().IsDir() && !strings.HasPrefix(f.Name, "__MACOSX/"):
			names, only = append(names, f.Name), f
		}
	}
	switch {
	case len(names) != 1:
		slices.Sort(names)
		return nil, fmt.Errorf("the file is a zip of %d files (%s): unpack it, and name those to import", len(names), strings.Join(names[:min(len(names), 5)], ", "))
	case only.Flags&1 != 0:
		return nil, errors.New("the file is a zip with a password: unpack it")
	}
	inner, err := only.Open()
	if err != nil {
		return nil, fmt.Errorf("%s in the zip: %w", only.Name, err)
	}
	return text(inner, size)
}
