package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// value is one line of the README's tables.
type value struct {
	Key, Type, Default, Description string
}

// section is a table: the values below one top-level key.
type section struct {
	Title  string
	Values []value
}

// readmeOf fills template with the values of a values.yaml, by helm-docs' convention: a comment "# -- text"
// above a key describes it, and "# @default -- text" stands for its default. A map whose keys are described is
// shown by its keys, one that is described itself as a whole.
func readmeOf(text, values []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	root := document.Content[0]
	general := section{Title: "General"}
	var sections []section
	for i := 0; i < len(root.Content); i += 2 {
		key, content := root.Content[i], root.Content[i+1]
		var rows []value
		if err := collect(&rows, key.Value, key, content); err != nil {
			return nil, err
		}
		if content.Kind == yaml.MappingNode && len(content.Content) > 0 {
			sections = append(sections, section{Title: key.Value, Values: rows})
			continue
		}
		general.Values = append(general.Values, rows...)
	}
	t, err := template.New("README.md.gotmpl").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, append([]section{general}, sections...))
	return b.Bytes(), err
}

// collect appends the rows of key and of what stands below it.
func collect(rows *[]value, path string, key, content *yaml.Node) error {
	description, byDefault := comment(key)
	whole := description != "" && byDefault != ""
	if content.Kind == yaml.MappingNode && len(content.Content) > 0 && !whole && content.Style != yaml.FlowStyle {
		if description != "" {
			*rows = append(*rows, value{Key: path, Type: "object", Description: description})
		}
		for i := 0; i < len(content.Content); i += 2 {
			k, c := content.Content[i], content.Content[i+1]
			if err := collect(rows, path+"."+k.Value, k, c); err != nil {
				return err
			}
		}
		return nil
	}
	if byDefault == "" {
		flow := *content
		flow.HeadComment, flow.LineComment, flow.FootComment = "", "", ""
		flow.Style |= yaml.FlowStyle
		text, err := yaml.Marshal(&flow)
		if err != nil {
			return fmt.Errorf("values.yaml: %s: %w", path, err)
		}
		byDefault = "`" + strings.Join(strings.Fields(string(text)), " ") + "`"
	}
	*rows = append(*rows, value{Key: path, Type: typeOf(content), Default: byDefault, Description: description})
	return nil
}

// comment reads helm-docs' marks above a key.
func comment(key *yaml.Node) (description, byDefault string) {
	var text []string
	begun := false
	for line := range strings.Lines(key.HeadComment) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		switch d, isDefault := strings.CutPrefix(line, "@default -- "); {
		case isDefault:
			byDefault = d
		case strings.HasPrefix(line, "-- "):
			text, begun = []string{strings.TrimPrefix(line, "-- ")}, true
		case begun:
			text = append(text, line)
		}
	}
	return strings.ReplaceAll(strings.TrimSpace(strings.Join(text, " ")), "|", `\|`), byDefault
}

func typeOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "object"
	case n.Kind == yaml.SequenceNode:
		return "list"
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "number"
	case n.Tag == "!!bool":
		return "bool"
	}
	return "string"
}
