package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// page returns the Markdown page about all kinds: a table of the kinds, and tables of the fields of each spec and
// status.
func page(kinds []*apiextensionsv1.CustomResourceDefinition) string {
	var b strings.Builder
	b.WriteString("# Custom resources\n\n")
	b.WriteString("*Reference, for platform engineers.*\n\n")
	b.WriteString("Every field of every kind, generated from `k8s/config/crd`. `kubectl explain` shows the same in a cluster. To use them, see\n" +
		"[Kubernetes](../how-to/kubernetes.md).\n\n")
	b.WriteString("| Kind | Short | Columns of `kubectl get` |\n|---|---|---|\n")
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
		version := k.Spec.Versions[0]
		schema := version.Schema.OpenAPIV3Schema
		fmt.Fprintf(&b, "\n## %s\n\n`%s/%s`, %s. %s\n", k.Spec.Names.Kind, k.Spec.Group, version.Name,
			strings.ToLower(string(k.Spec.Scope)), prose(schema.Description))
		noun := article(k.Spec.Names.Kind) + " " + k.Spec.Names.Kind
		spec, status := schema.Properties["spec"], schema.Properties["status"]
		fmt.Fprintf(&b, "\n### spec of %s\n\n| Field | Type | Allowed | Meaning |\n|---|---|---|---|\n", noun)
		for _, r := range fields(nil, &spec, "") {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.path, r.kind, r.bounds, r.meaning)
		}
		if rules := rulesOf(&spec); len(rules) > 0 {
			fmt.Fprintf(&b, "\nAs a whole: %s.\n", strings.Join(rules, "; "))
		}
		// The operator writes the status, so nobody has to know what is allowed.
		fmt.Fprintf(&b, "\n### status of %s\n\n| Field | Type | Meaning |\n|---|---|---|\n", noun)
		for _, r := range fields(nil, &status, "") {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.path, r.kind, r.meaning)
		}
	}
	return b.String()
}

// row is the row of one field in a table: the field's path, type, bounds and description.
type row struct{ path, kind, bounds, meaning string }

// fields appends a row for each field of object to rows, required fields first. The fields within a field follow their
// parent, except those of conditions, which have no rows. prefix is the path of object.
func fields(rows []row, object *apiextensionsv1.JSONSchemaProps, prefix string) []row {
	names := make([]string, 0, len(object.Properties))
	for name := range object.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		ra, rb := slices.Contains(object.Required, a), slices.Contains(object.Required, b)
		if ra != rb {
			if ra {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		p := object.Properties[name]
		r := row{path: prefix + name, kind: kindOf(&p), meaning: cell(meaning(name, p.Description))}
		if slices.Contains(object.Required, name) {
			r.kind += ", required"
		}
		if p.Default != nil {
			r.kind += ", default `" + cell(string(p.Default.Raw)) + "`"
		}
		r.bounds = cell(strings.Join(boundsOf(&p), "; "))
		rows = append(rows, r)
		// The fields of a condition are the same in all of Kubernetes.
		if name == "conditions" {
			continue
		}
		if p.Type == "array" && p.Items != nil && p.Items.Schema != nil {
			rows = fields(rows, p.Items.Schema, r.path+"[].")
			continue
		}
		rows = fields(rows, &p, r.path+".")
	}
	return rows
}

// kindOf returns the type of a field as the table shows it, such as "string", "list of string" or "time".
func kindOf(p *apiextensionsv1.JSONSchemaProps) string {
	if p.Type == "array" && p.Items != nil && p.Items.Schema != nil {
		return "list of " + kindOf(p.Items.Schema)
	}
	if p.Format == "date-time" {
		return "time"
	}
	return p.Type
}

// boundsOf returns the rules that a value must follow, as texts such as "1 to 256 characters". The texts come from the
// bounds, the pattern and the validation rules in p.
func boundsOf(p *apiextensionsv1.JSONSchemaProps) []string {
	var said []string
	span := func(least, most *int64, unit string) {
		switch {
		case least != nil && most != nil && *least != *most:
			said = append(said, fmt.Sprintf("%d to %d %s", *least, *most, unit))
		case most != nil:
			said = append(said, fmt.Sprintf("up to %d %s", *most, unit))
		case least != nil:
			said = append(said, fmt.Sprintf("at least %d %s", *least, unit))
		}
	}
	if p.Minimum != nil || p.Maximum != nil {
		said = append(said, strings.TrimSpace(number(p.Minimum)+" to "+number(p.Maximum)))
	}
	// A rule's message already describes the length and the pattern.
	inWords := len(rulesOf(p)) > 0
	if !inWords {
		span(p.MinLength, p.MaxLength, "characters")
	}
	span(p.MinItems, p.MaxItems, "items")
	if len(p.Enum) > 0 {
		var values []string
		for _, v := range p.Enum {
			values = append(values, "`"+strings.Trim(string(v.Raw), `"`)+"`")
		}
		said = append(said, "one of "+strings.Join(values, ", "))
	}
	if p.Pattern != "" && !inWords {
		said = append(said, "matches `"+p.Pattern+"`")
	}
	said = append(said, rulesOf(p)...)
	if p.XListType != nil && *p.XListType == "set" {
		said = append(said, "none twice")
	}
	if p.Type == "array" && p.Items != nil && p.Items.Schema != nil {
		var each []string
		if p.Items.Schema.Type != "object" {
			each = boundsOf(p.Items.Schema)
		} else {
			each = rulesOf(p.Items.Schema)
		}
		if len(each) > 0 {
			said = append(said, "each: "+strings.Join(each, ", "))
		}
	}
	return said
}

// rulesOf returns the messages of the validation rules of a value. It omits rules about changes, because the
// description of a field says whether the field is immutable.
func rulesOf(p *apiextensionsv1.JSONSchemaProps) []string {
	var said []string
	for _, rule := range p.XValidations {
		if !strings.Contains(rule.Rule, "oldSelf") {
			said = append(said, rule.Message)
		}
	}
	return said
}

func number(f *float64) string {
	if f == nil {
		return "any"
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
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
func prose(description string) string {
	return strings.Join(strings.Fields(description), " ")
}

// cell returns text for a cell of a Markdown table, with each | escaped.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func article(noun string) string {
	if strings.ContainsRune("AEIOU", rune(noun[0])) {
		return "an"
	}
	return "a"
}
