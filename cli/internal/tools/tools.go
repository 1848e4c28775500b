// Package tools offers the API's operations that read a project as tools of the Model Context Protocol
// (https://modelcontextprotocol.io). A tool has the name, the parameters and the text of its operation in
// the API's description. No tool writes.
package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/openapi"
)

// A result takes room in the memory of a model. defaultLimit is how many records a list has if the client asks for no number,
// and mostRecords how many a list has at most. mostBytes is the greatest length of a result, in bytes.
const (
	defaultLimit = 20
	mostRecords  = 200
	mostBytes    = 60_000
)

// Serve offers the tools of a project to one client that writes to in and reads from out, until in ends. reader sends the
// requests to the API.
func Serve(ctx context.Context, reader *client.Client, project string, in io.Reader, out io.Writer) error {
	operations, err := readOperations(openapi.JSON())
	if err != nil {
		return err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "lectern", Title: "Lectern, project " + project, Version: "1"}, nil)
	for _, o := range operations {
		server.AddTool(o.tool(), func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return call(ctx, reader, o, project, r.Params.Arguments), nil
		})
	}
	err = server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: unclosed{out}})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// unclosed is a writer whose owner closes the underlying writer.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }

// operation is an operation that reads a project.
type operation struct {
	name, title, text string
	path              string // with {projectId}
	parameters        []parameter
}

// parameter is a parameter of an operation, as in the API's description.
type parameter struct {
	Name        string         `json:"name"`
	In          string         `json:"in"` // path or query
	Required    bool           `json:"required"`
	Description string         `json:"description"`
	Schema      map[string]any `json:"schema"`
}

// withheld are the parameters that a tool does not have: the project is that of the command, and a tool does not wait.
var withheld = []string{"projectId", "wait"}

// readOperations returns the operations of a description that read a project, by name.
func readOperations(description []byte) ([]operation, error) {
	var all struct {
		Paths map[string]struct {
			Get struct {
				OperationID, Summary, Description string
				Parameters                        []json.RawMessage
			}
			Parameters []json.RawMessage
		}
		Components struct {
			Parameters map[string]parameter
			Schemas    map[string]map[string]any
		}
	}
	if err := json.Unmarshal(description, &all); err != nil {
		return nil, err
	}
	var operations []operation
	for path, item := range all.Paths {
		if !strings.HasPrefix(path, "/projects/{projectId}") || item.Get.OperationID == "" {
			continue
		}
		o := operation{name: item.Get.OperationID, title: item.Get.Summary, text: item.Get.Description, path: path}
		for _, text := range slices.Concat(item.Get.Parameters, item.Parameters) {
			var ref struct {
				Ref string `json:"$ref"`
			}
			if err := json.Unmarshal(text, &ref); err != nil {
				return nil, err
			}
			p, ok := all.Components.Parameters[lastPart(ref.Ref)]
			if !ok {
				return nil, fmt.Errorf("the description has no parameter %s", ref.Ref)
			}
			if schema, isRef := p.Schema["$ref"].(string); isRef {
				p.Schema = all.Components.Schemas[lastPart(schema)]
			}
			if !slices.Contains(withheld, p.Name) {
				o.parameters = append(o.parameters, p)
			}
		}
		operations = append(operations, o)
	}
	slices.SortFunc(operations, func(a, b operation) int { return strings.Compare(a.name, b.name) })
	return operations, nil
}

// lastPart returns the name at the end of a reference such as "#/components/parameters/limit".
func lastPart(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// tool returns the tool of an operation.
func (o operation) tool() *mcp.Tool {
	properties, required := map[string]any{}, []string{}
	for _, p := range o.parameters {
		schema := maps.Clone(p.Schema)
		schema["description"] = strings.TrimSpace(p.Description)
		if p.Name == "limit" {
			schema["default"], schema["maximum"] = defaultLimit, mostRecords
		}
		properties[p.Name] = schema
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return &mcp.Tool{
		Name: o.name, Title: o.title, Description: strings.TrimSpace(o.title + ".\n\n" + o.text),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		InputSchema: map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false},
	}
}

// call calls an operation with arguments, a JSON object, and returns the answer as text. A list has fewer records than the
// client asked for if more are too long, and then its cursor. An error of the API is a result too, so that the client can
// correct its arguments.
func call(ctx context.Context, reader *client.Client, o operation, project string, arguments json.RawMessage) *mcp.CallToolResult {
	path, query, err := o.request(project, arguments)
	if err != nil {
		return failure(err)
	}
	for {
		list, err := client.ListAt(path + "?" + query.Encode())
		if err != nil {
			return failure(err)
		}
		body, next, err := reader.JSON(ctx, list, "", 0)
		if err != nil {
			return failure(err)
		}
		if n := fit(body); n > 0 && query.Has("limit") {
			query.Set("limit", strconv.Itoa(n))
			continue
		}
		texts := []string{string(bytes.TrimSpace(body))}
		if len(body) > mostBytes {
			texts[0] = strings.ToValidUTF8(string(body[:mostBytes]), "")
			texts = append(texts, fmt.Sprintf("These are the first %d of %d bytes. The command lectern get or lectern list reads the rest.", mostBytes, len(body)))
		}
		if next != "" {
			texts = append(texts, "There is more. For the next page, call the tool with cursor: "+next)
		}
		result := &mcp.CallToolResult{}
		for _, text := range texts {
			result.Content = append(result.Content, &mcp.TextContent{Text: text})
		}
		return result
	}
}

// fit returns how many of the first records of a list fit into a result, at least 1. Zero stands for a list that fits whole or
// has one record, and for what is no list.
func fit(body []byte) int {
	var records []json.RawMessage
	if len(body) <= mostBytes || json.Unmarshal(body, &records) != nil || len(records) < 2 {
		return 0
	}
	n, length := 0, len("[]")
	for ; n < len(records) && length <= mostBytes; n++ {
		length += len(records[n]) + len(",")
	}
	return max(1, n-1)
}

func failure(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(strings.Fields(err.Error()), " ")}}}
}

// request returns the path and the query of an operation's request. Clients with strict schemas send every argument, so an
// optional argument that is null or an empty text is absent. The error names an argument that the operation does not have or
// lacks.
func (o operation) request(project string, arguments json.RawMessage) (path string, query url.Values, err error) {
	given := map[string]json.RawMessage{}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &given); err != nil {
			return "", nil, fmt.Errorf("the arguments are no JSON object: %w", err)
		}
	}
	path, query = strings.Replace(o.path, "{projectId}", url.PathEscape(project), 1), url.Values{}
	var names []string
	for _, p := range o.parameters {
		names = append(names, p.Name)
		value := given[p.Name]
		delete(given, p.Name)
		absent := len(value) == 0 || string(value) == "null" || string(value) == `""`
		switch {
		case absent && p.Required:
			return "", nil, fmt.Errorf("the argument %s is missing, and is required", p.Name)
		case absent && p.Name == "limit":
			value = json.RawMessage(strconv.Itoa(defaultLimit))
		case absent:
			continue
		}
		text := string(value) // a number or a boolean
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		if n, err := strconv.Atoi(text); p.Name == "limit" && err == nil {
			text = strconv.Itoa(min(n, mostRecords))
		}
		if p.In == "path" {
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(text), 1)
		} else {
			query.Set(p.Name, text)
		}
	}
	for name := range given {
		return "", nil, fmt.Errorf("the argument %s is unknown; allowed: %s", name, strings.Join(names, ", "))
	}
	return path, query, nil
}
