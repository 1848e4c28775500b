package client

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStatusesEqualTheDescription compares the statuses with those of the published description.
func TestStatusesEqualTheDescription(t *testing.T) {
	var description struct {
		Components struct {
			Schemas struct {
				Experiment struct {
					Properties struct {
						Status struct{ Enum []*ExperimentStatus }
					}
				}
			}
		}
	}
	readDescription(t, &description)
	want := []ExperimentStatus{Draft, Running, Paused, WinnerPicked, Completed, Discarded}
	var got []ExperimentStatus
	for _, status := range description.Components.Schemas.Experiment.Properties.Status.Enum {
		if status != nil {
			got = append(got, *status)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the description has %q, this package %q", got, want)
	}
}

// TestCodesEqualTheClosedSet compares the constants of error codes with those of the services.
func TestCodesEqualTheClosedSet(t *testing.T) {
	codes := func(file string) []string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, m := range regexp.MustCompile(`(?m)^\t\w+ .*= "([a-z_]+)"$`).FindAllStringSubmatch(string(content), -1) {
			found = append(found, m[1])
		}
		slices.Sort(found)
		return found
	}
	got, want := codes("code.go"), codes(filepath.Join("..", "shared", "apierr", "code.go"))
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("this package has %q, the services %q", got, want)
	}
}

// property has the properties of a field that both the published description and a Go type express.
type property struct {
	Type     string
	Format   string
	Nullable bool
	Required bool `json:"-"`
}

// TestRecordsEqualTheDescription compares the records of this package with the schemas of the published description: the
// fields, their types, and whether they may be null.
func TestRecordsEqualTheDescription(t *testing.T) {
	schemas := readSchemas(t)
	for name, record := range map[string]any{
		"Entry":                           Entry{},
		"EntryEvent":                      Event{},
		"FeedEvent":                       ChangedEvent{},
		"RemovalChange":                   removalChange{},
		"EntryPageViews":                  EntryPageViews{},
		"PageView":                        PageView{},
		"Embeddable":                      Embeddable{},
		"EmbeddableWithDefinition":        EmbeddableWithDefinition{},
		"EmbeddableVersion":               EmbeddableVersion{},
		"EmbeddableVersionWithDefinition": EmbeddableVersionWithDefinition{},
		"Experiment":                      Experiment{},
		"ExperimentStatusChange":          ExperimentStatusChange{},
		"Project":                         Project{},
		"Region":                          Region{},
		"EntryCount":                      EntryCount{},
		"EntriesOverview":                 EntriesOverview{},
		"PreviousEntries":                 PreviousEntries{},
		"EmbeddableOverview":              EmbeddableOverview{},
		"LargestDrop":                     LargestDrop{},
		"Funnel":                          Funnel{},
		"FunnelPage":                      FunnelPage{},
		"Answers":                         Answers{},
		"AnswerKeys":                      AnswerKeys{},
		"AnswerNumbers":                   AnswerNumbers{},
		"AnswerBin":                       AnswerBin{},
	} {
		t.Run(name, func(t *testing.T) {
			want, ok := schemas[name]
			if !ok || len(want) == 0 {
				t.Fatalf("the description has no such schema")
			}
			got := map[string]property{}
			propertiesOf(reflect.TypeOf(record), got)
			for _, field := range slices.Sorted(maps.Keys(union(want, got))) {
				if got[field] != want[field] {
					t.Errorf("%s: %+v here, %+v in the description", field, got[field], want[field])
				}
			}
		})
	}
}

// removalChange is a Change with a Removal.
type removalChange struct {
	Type ChangeType `json:"change"`
	Seq  int64      `json:"seq"`
	Removal
}

func union(a, b map[string]property) map[string]property {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// propertiesOf adds the fields of a struct by the names in their tags.
func propertiesOf(of reflect.Type, to map[string]property) {
	for f := range of.Fields() {
		if f.Anonymous {
			propertiesOf(f.Type, to)
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		p := property{Required: option != "omitempty"}
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			p.Nullable, kind = true, kind.Elem()
		}
		switch {
		case kind == reflect.TypeFor[time.Time]():
			p.Type, p.Format = "string", "date-time"
		case kind.Kind() == reflect.String:
			p.Type = "string"
		case kind.Kind() == reflect.Bool:
			p.Type = "boolean"
		case kind.Kind() == reflect.Int64:
			p.Type, p.Format = "integer", "int64"
		case kind.Kind() == reflect.Float64:
			p.Type, p.Format = "number", "double"
		case kind.Kind() == reflect.Int:
			p.Type = "integer"
		case kind.Kind() == reflect.Slice:
			p.Type = "array"
			// Only lists of strings may be null, which is a nil slice.
			p.Nullable = kind.Elem().Kind() == reflect.String
		}
		to[name] = p
	}
}

// TestQueriesEqualTheDescription checks that each query can set exactly the parameters that the published description has for
// its operation. Paging sets limit and cursor.
func TestQueriesEqualTheDescription(t *testing.T) {
	type parameter struct {
		Ref  string `json:"$ref"`
		Name string
	}
	var description struct {
		Paths map[string]struct {
			Get struct{ Parameters []parameter }
		}
		Components struct{ Parameters map[string]parameter }
	}
	readDescription(t, &description)
	for template, query := range map[string]interface{ List(string) List }{
		"/projects/{projectId}/entries":            filled[EntryQuery](),
		"/projects/{projectId}/entries-page-views": filled[PageViewQuery](),
		"/projects/{projectId}/embeddables":        filled[EmbeddableQuery](),
		"/projects/{projectId}/experiments":        filled[ExperimentQuery](),
		"/projects/{projectId}/entries-counts":     filled[CountQuery](),
		"/projects/{projectId}/entries-overview":   filled[OverviewQuery](),
		"/projects/{projectId}/entries-funnel":     filled[FunnelQuery](),
		"/projects/{projectId}/entries-answers":    filled[AnswerQuery](),
	} {
		want := map[string]bool{}
		for _, p := range description.Paths[template].Get.Parameters {
			if shared, ok := description.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]; ok {
				p = shared
			}
			want[p.Name] = true
		}
		delete(want, "limit")
		delete(want, "cursor")
		got := map[string]bool{}
		for name := range query.List("pr_1").values {
			got[name] = true
		}
		if !maps.Equal(got, want) {
			t.Errorf("%T sets %v; the description has %v", query, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}

// filled returns a query with all fields set.
func filled[Query any]() Query {
	var q Query
	fill(reflect.ValueOf(&q).Elem())
	return q
}

func fill(query reflect.Value) {
	for _, value := range query.Fields() {
		switch {
		case value.Type() == reflect.TypeFor[time.Time]():
			value.Set(reflect.ValueOf(time.Unix(1, 0)))
		case value.Kind() == reflect.Struct:
			fill(value)
		case value.Kind() == reflect.Pointer:
			value.Set(reflect.New(value.Type().Elem()))
		case value.Kind() == reflect.String:
			value.SetString("x")
		case value.Kind() == reflect.Bool:
			value.SetBool(true)
		case value.CanInt():
			value.SetInt(1)
		}
	}
}

// readDescription reads the published description as JSON, because this module has no YAML decoder.
func readDescription(t *testing.T, to any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "shared", "openapi", "lectern.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, to); err != nil {
		t.Fatal(err)
	}
}

// readSchemas reads the description's schemas.
func readSchemas(t *testing.T) map[string]map[string]property {
	t.Helper()
	var description struct {
		Components struct {
			Schemas map[string]struct {
				Nullable   bool
				Required   []string
				Properties map[string]struct {
					property
					Ref   string `json:"$ref"`
					AllOf []any
				}
			}
		}
	}
	readDescription(t, &description)
	schemas := map[string]map[string]property{}
	for name, s := range description.Components.Schemas {
		schemas[name] = map[string]property{}
		for field, described := range s.Properties {
			p := described.property
			p.Required = slices.Contains(s.Required, field)
			if described.AllOf != nil {
				p.Type = "" // that of another schema
			}
			if of, ok := strings.CutPrefix(described.Ref, "#/components/schemas/"); ok {
				p.Nullable = description.Components.Schemas[of].Nullable
			}
			schemas[name][field] = p
		}
	}
	return schemas
}
