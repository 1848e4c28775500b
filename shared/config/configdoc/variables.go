package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// variable is an environment variable that one program reads, as the table of settings describes it.
type variable struct {
	name      string
	meaning   string // the field's comment, in one line
	byDefault string // as Markdown
	secret    bool
}

// variablesOf returns the variables that the fields of a struct type and of the structs within it name, in their order.
// After the variable of a ServerURL comes that of its password file.
func variablesOf(ctx context.Context, folder, typeName string) ([]variable, error) {
	var r reader
	if err := r.read(ctx, folder, typeName); err != nil {
		return nil, err
	}
	return r.found, nil
}

type reader struct {
	found []variable
	seen  map[string]bool
}

// read adds the variables of the struct type typeName in folder to r.found.
func (r *reader) read(ctx context.Context, folder, typeName string) error {
	file, structure, err := structOf(folder, typeName)
	if err != nil {
		return err
	}
	for _, field := range structure.Fields.List {
		tag := reflect.StructTag("")
		if field.Tag != nil {
			text, err := strconv.Unquote(field.Tag.Value)
			if err != nil {
				return fmt.Errorf("%s.%s: tag %s: %w", folder, typeName, field.Tag.Value, err)
			}
			tag = reflect.StructTag(text)
		}
		name, options, _ := strings.Cut(tag.Get("env"), ",")
		switch name {
		case "-":
		case "":
			if err := r.readWithin(ctx, folder, file, field.Type); err != nil {
				return fmt.Errorf("%s.%s: %w", folder, typeName, err)
			}
		default:
			if err := r.add(name, options, tag, field); err != nil {
				return fmt.Errorf("%s.%s: %w", folder, typeName, err)
			}
		}
	}
	return nil
}

// readWithin adds the variables of a field whose type is a struct of this package or of another package of this
// project. A field of an unexported type, or of a type outside this project, adds nothing.
func (r *reader) readWithin(ctx context.Context, folder string, file *ast.File, fieldType ast.Expr) error {
	switch t := fieldType.(type) {
	case *ast.Ident:
		if !t.IsExported() {
			return nil // a plain field, which no variable fills
		}
		return r.read(ctx, folder, t.Name)
	case *ast.SelectorExpr:
		from, ok := t.X.(*ast.Ident)
		if !ok {
			return fmt.Errorf("a field's type is not understood")
		}
		path := importOf(file, from.Name)
		if !strings.HasPrefix(path, modulePrefix) {
			return nil
		}
		other, err := folderOf(ctx, folder, path)
		if err != nil {
			return err
		}
		return r.read(ctx, other, t.Sel.Name)
	}
	return nil
}

// modulePrefix begins the import paths of all packages of this project.
const modulePrefix = "github.com/lectern-dev/lectern/"

func (r *reader) add(name, options string, tag reflect.StructTag, field *ast.Field) error {
	if r.seen[name] {
		return nil
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[name] = true
	meaning := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
	if meaning == "" {
		return fmt.Errorf("%s has no comment", name)
	}
	byDefault := "–"
	switch value, ok := tag.Lookup("envDefault"); {
	case ok && value != "":
		byDefault = "`" + value + "`"
	case strings.Contains(options, "required"), strings.Contains(options, "notEmpty"):
		byDefault = "required"
	}
	kind := typeOf(field.Type)
	r.found = append(r.found, variable{name, meaning, byDefault, kind == "Secret" || kind == "ServerURL"})
	if kind == "ServerURL" {
		r.found = append(r.found, variable{
			name:      strings.TrimSuffix(name, "_URL") + "_PASSWORD_FILE",
			meaning:   "A file with the password of `" + name + "`, which then has none. Each new connection reads the file.",
			byDefault: "–",
		})
	}
	return nil
}

// typeOf returns the name of a type without its package, or for a list that of its elements. Any other type has the
// name "".
func typeOf(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.ArrayType:
		return typeOf(t.Elt)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// structOf returns the struct type typeName of the package in folder, and the file that declares the type.
func structOf(folder, typeName string) (*ast.File, *ast.StructType, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range file.Decls {
			types, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range types.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok || spec.Name.Name != typeName {
					continue
				}
				if structure, ok := spec.Type.(*ast.StructType); ok {
					return file, structure, nil
				}
			}
		}
	}
	return nil, nil, fmt.Errorf("%s has no struct type %s", folder, typeName)
}

// importOf returns the path that file imports as name, or "" if file has no such import.
func importOf(file *ast.File, name string) string {
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		if i.Name != nil && i.Name.Name == name || i.Name == nil && path[strings.LastIndexByte(path, '/')+1:] == name {
			return path
		}
	}
	return ""
}

// folderOf returns the folder of the package with the import path. folderOf runs go list in folder, whose module
// imports path.
func folderOf(ctx context.Context, folder, path string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", path)
	cmd.Dir = folder
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list %s: %w", path, err)
	}
	return strings.TrimSpace(string(out)), nil
}
