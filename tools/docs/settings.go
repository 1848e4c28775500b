package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// settingsTable matches the table of settings between its marks. The first mark has a line for each struct: the program that
// reads the struct, its package's folder and its type's name.
var settingsTable = regexp.MustCompile(`(?s)(<!-- settings\n(.*?)-->\n).*(<!-- settings end -->)`)

// setting is an environment variable, and the programs that read the variable with the same meaning and default.
type setting struct {
	name      string
	meaning   string // the field's comment, in one line
	byDefault string // as Markdown
	secret    bool
	readers   []string // in the order of the mark
}

// settings are those that were found, by all but their readers.
type settings []setting

func writeSettings() error {
	const page = "docs/reference/settings.md"
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	marks := settingsTable.FindSubmatch(text)
	if marks == nil {
		return fmt.Errorf("%s has no marks of a table", page)
	}
	var found settings
	for line := range strings.Lines(string(marks[2])) {
		reader, source, _ := strings.Cut(strings.TrimSpace(line), ": ")
		folder, typeName, _ := strings.Cut(source, " ")
		if err := found.read(reader, folder, typeName); err != nil {
			return err
		}
	}
	slices.SortStableFunc(found, func(a, b setting) int { return cmp.Compare(a.name, b.name) })
	var table strings.Builder
	table.WriteString("\n| Setting | Read by | Default | Meaning |\n|---|---|---|---|\n")
	for _, s := range found {
		name := "`" + s.name + "`"
		if s.secret {
			name += " (secret)"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", name, strings.Join(s.readers, ", "), s.byDefault, strings.ReplaceAll(s.meaning, "|", `\|`))
	}
	table.WriteByte('\n')
	filled := settingsTable.ReplaceAllFunc(text, func([]byte) []byte {
		return slices.Concat(marks[1], []byte(table.String()), marks[3])
	})
	return os.WriteFile(page, filled, 0o644)
}

// inner matches the type of a field that is a struct with settings of its own, of the same package or of another.
var inner = regexp.MustCompile(`^(?:(\w+)\.)?([A-Z]\w*)$`)

// modulePrefix begins the import paths of all packages of this project. The folder of a package follows.
const modulePrefix = "github.com/lectern-dev/lectern/"

// read adds the settings that reader loads into the struct type typeName in folder, and into the structs within the type.
func (s *settings) read(reader, folder, typeName string) error {
	file, structure, err := structOf(folder, typeName)
	if err != nil {
		return err
	}
	for _, field := range structure.Fields.List {
		var tag reflect.StructTag
		if field.Tag != nil {
			tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
		}
		kind := types.ExprString(field.Type)
		name, options, _ := strings.Cut(tag.Get("env"), ",")
		if name == "-" {
			continue
		}
		if name != "" {
			meaning := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
			if meaning == "" {
				return fmt.Errorf("%s.%s: %s has no comment", folder, typeName, name)
			}
			s.add(reader, name, meaning, tag.Get("envDefault"), options, path.Ext("."+strings.TrimPrefix(kind, "[]")))
			continue
		}
		if m := inner.FindStringSubmatch(kind); m != nil {
			within, ok := folder, true
			if m[1] != "" {
				within, ok = strings.CutPrefix(importOf(file, m[1]), modulePrefix)
			}
			if !ok {
				continue
			}
			if err := s.read(reader, within, m[2]); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a setting, and after that of a ServerURL that of its password file. kind is the name of the type, after a dot.
func (s *settings) add(reader, name, meaning, byDefault, options, kind string) {
	switch {
	case byDefault != "":
		byDefault = "`" + byDefault + "`"
	case options == "required":
		byDefault = "required"
	default:
		byDefault = "–"
	}
	i := slices.IndexFunc(*s, func(o setting) bool { return o.name == name && o.meaning == meaning && o.byDefault == byDefault })
	if i < 0 {
		i = len(*s)
		*s = append(*s, setting{name: name, meaning: meaning, byDefault: byDefault, secret: kind == ".Secret" || kind == ".ServerURL"})
	}
	if found := &(*s)[i]; !slices.Contains(found.readers, reader) {
		found.readers = append(found.readers, reader)
	}
	if kind == ".ServerURL" {
		s.add(reader, strings.TrimSuffix(name, "_URL")+"_PASSWORD_FILE", "A file with the password of `"+name+"`, which then has none. Each new connection reads the file.", "", "", "")
	}
}

// structOf returns the struct type typeName of the package in folder, and the file that declares the type.
func structOf(folder, typeName string) (file *ast.File, found *ast.StructType, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if file, err = parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments); err != nil {
			return nil, nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == typeName {
				found, _ = spec.Type.(*ast.StructType)
			}
			return found == nil
		})
		if found != nil {
			return file, found, nil
		}
	}
	return nil, nil, fmt.Errorf("%s has no struct type %s", folder, typeName)
}

// importOf returns the path that file imports as name.
func importOf(file *ast.File, name string) string {
	for _, i := range file.Imports {
		imported := strings.Trim(i.Path.Value, `"`)
		if i.Name != nil && i.Name.Name == name || i.Name == nil && path.Base(imported) == name {
			return imported
		}
	}
	return ""
}
