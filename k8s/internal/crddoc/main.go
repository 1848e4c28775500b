// Command crddoc prints a Markdown reference of CustomResourceDefinitions, with tables of the fields of each spec and
// status. The command reads the .yaml files of a folder, whose names begin with the kinds.
//
// The package crd-ref-docs makes such a page from Go types. It leaves out the messages of validation rules, which say what is
// allowed, the short names, and the columns of kubectl get.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	kinds, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "crddoc:", err)
		os.Exit(1)
	}
	fmt.Print(page(kinds))
}

func read(folder string) (kinds []*apiextensionsv1.CustomResourceDefinition, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		kind := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, kind); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

const introduction = "# Custom resources\n\n*Reference, for platform engineers.*\n\n" +
	"Every field of every kind, generated from `k8s/config/crd`. `kubectl explain` shows the same in a cluster. To use them, see\n" +
	"[Kubernetes](../how-to/kubernetes.md).\n\n| Kind | Short | Columns of `kubectl get` |\n|---|---|---|\n"

// page returns the Markdown page about all kinds: a table of the kinds, and tables of the fields of each spec and
// status.
func page(kinds []*apiextensionsv1.CustomResourceDefinition) string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, k := range kinds {
		var columns []string
		for _, c := range k.Spec.Versions[0].AdditionalPrinterColumns {
			if c.Priority == 0 {
				columns = append(columns, c.Name)
			}
		}
		fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s |\n", k.Spec.Names.Kind, strings.ToLower(k.Spec.Names.Kind),
			strings.Join(k.Spec.Names.ShortNames, "`, `"), strings.Join(columns, ", "))
	}
	for _, k := range kinds {
		version, kind := k.Spec.Versions[0], k.Spec.Names.Kind
		schema := version.Schema.OpenAPIV3Schema
		fmt.Fprintf(&b, "\n## %s\n\n`%s/%s`, %s. %s\n", kind, k.Spec.Group, version.Name, strings.ToLower(string(k.Spec.Scope)), prose(schema.Description))
		spec, status := schema.Properties["spec"], schema.Properties["status"]
		fmt.Fprintf(&b, "\n### spec of %s\n\n| Field | Type | Allowed | Meaning |\n|---|---|---|---|\n", kind)
		for _, r := range fields(nil, &spec, "") {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.path, r.kind, r.bounds, r.meaning)
		}
		if rules := rulesOf(&spec); len(rules) > 0 {
			fmt.Fprintf(&b, "\nAs a whole: %s.\n", strings.Join(rules, "; "))
		}
		// The operator writes the status, so nobody has to know what is allowed.
		fmt.Fprintf(&b, "\n### status of %s\n\n| Field | Type | Meaning |\n|---|---|---|\n", kind)
		for _, r := range fields(nil, &status, "") {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.path, r.kind, r.meaning)
		}
	}
	return b.String()
}

// row is the row of one field in a table: the field's path, type, bounds and description.
type row struct{ path, kind, bounds, meaning string }

// fields appends a row for each field of object to rows, required fields first. The fields within a field follow their
// parent, except those of conditions, which are the same in all of Kubernetes. prefix is the path of object.
func fields(rows []row, object *apiextensionsv1.JSONSchemaProps, prefix string) []row {
	names := slices.Sorted(maps.Keys(object.Properties))
	optional := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(object.Required, name) })
	names = append(slices.DeleteFunc(names, func(name string) bool { return slices.Contains(optional, name) }), optional...)
	for _, name := range names {
		p := object.Properties[name]
		r := row{prefix + name, kindOf(&p), cell(strings.Join(boundsOf(&p), "; ")), cell(meaning(name, p.Description))}
		if !slices.Contains(optional, name) {
			r.kind += ", required"
		}
		if p.Default != nil {
			r.kind += ", default `" + cell(string(p.Default.Raw)) + "`"
		}
		rows = append(rows, r)
		switch {
		case name == "conditions":
		case p.Type == "array":
			rows = fields(rows, p.Items.Schema, r.path+"[].")
		default:
			rows = fields(rows, &p, r.path+".")
		}
	}
	return rows
}

// kindOf returns the type of a field as the table shows it, such as "string", "list of string" or "time".
func kindOf(p *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case p.Type == "array":
		return "list of " + kindOf(p.Items.Schema)
	case p.Format == "date-time":
		return "time"
	}
	return p.Type
}

// boundsOf returns the rules that a value must follow, as texts such as "1 to 256 characters". The texts come from the
// bounds, the pattern and the validation rules in p.
func boundsOf(p *apiextensionsv1.JSONSchemaProps) []string {
	rules := rulesOf(p)
	said := span(p.Minimum, p.Maximum, "")
	if len(rules) == 0 { // the message of a rule already describes the length and the pattern
		said = append(said, span(p.MinLength, p.MaxLength, " characters")...)
	}
	said = append(said, span(p.MinItems, p.MaxItems, " items")...)
	if len(p.Enum) > 0 {
		var values []string
		for _, v := range p.Enum {
			values = append(values, "`"+strings.Trim(string(v.Raw), `"`)+"`")
		}
		said = append(said, "one of "+strings.Join(values, ", "))
	}
	if p.Pattern != "" && len(rules) == 0 {
		said = append(said, "matches `"+p.Pattern+"`")
	}
	said = append(said, rules...)
	if p.XListType != nil && *p.XListType == "set" {
		said = append(said, "none twice")
	}
	if p.Type == "array" {
		each := rulesOf(p.Items.Schema)
		if p.Items.Schema.Type != "object" {
			each = boundsOf(p.Items.Schema)
		}
		if len(each) > 0 {
			said = append(said, "each: "+strings.Join(each, ", "))
		}
	}
	return said
}

// span returns the bounds of a number, as one text or none.
func span[N int64 | float64](least, most *N, unit string) []string {
	switch {
	case least != nil && most != nil && *least != *most:
		return []string{fmt.Sprintf("%d to %d%s", int64(*least), int64(*most), unit)}
	case most != nil:
		return []string{fmt.Sprintf("up to %d%s", int64(*most), unit)}
	case least != nil:
		return []string{fmt.Sprintf("at least %d%s", int64(*least), unit)}
	}
	return nil
}

// rulesOf returns the messages of the validation rules of a value. It omits rules about changes, because the
// description of a field says whether the field is immutable.
func rulesOf(p *apiextensionsv1.JSONSchemaProps) (said []string) {
	for _, rule := range p.XValidations {
		if !strings.Contains(rule.Rule, "oldSelf") {
			said = append(said, rule.Message)
		}
	}
	return said
}

// meaning returns the description of a field without the field's own name at its beginning, because the table has a
// column for the name.
func meaning(name, description string) string {
	text := prose(description)
	for _, beginning := range []string{name + " is ", name + " are ", name + " "} {
		if rest, ok := strings.CutPrefix(text, beginning); ok && rest != "" {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return text
}

// prose returns a description as one line, with single spaces between the words.
func prose(description string) string { return strings.Join(strings.Fields(description), " ") }

// cell returns text for a cell of a Markdown table, with each | escaped.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
