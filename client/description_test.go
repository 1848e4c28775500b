package client

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A status is one of those of the description, or null.
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

// property is what the published description says of a field, as far as a Go type can say it.
type property struct {
	Type     string
	Format   string
	Nullable bool
	Required bool `json:"-"`
}

// The records of this package are the schemas of the published description: field by field, with their
// types and which may be null.
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

// propertiesOf adds the fields of a struct, as its tags name them.
func propertiesOf(of reflect.Type, to map[string]property) {
	for f := range of.Fields() {
		if f.Anonymous {
			propertiesOf(f.Type, to)
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
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
		case kind.Kind() == reflect.Int64:
			p.Type, p.Format = "integer", "int64"
		case kind.Kind() == reflect.Int:
			p.Type = "integer"
		case kind.Kind() == reflect.Slice:
			p.Type = "array"
			// A list of texts that is null is a nil slice; other lists are always there.
			p.Nullable = kind.Elem().Kind() == reflect.String
		}
		to[name] = p
	}
}

// readDescription reads the published description, from its JSON, as this module has nothing that reads
// YAML.
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
				Required   []string
				Properties map[string]property
			}
		}
	}
	readDescription(t, &description)
	schemas := map[string]map[string]property{}
	for name, s := range description.Components.Schemas {
		schemas[name] = map[string]property{}
		for field, p := range s.Properties {
			p.Required = slices.Contains(s.Required, field)
			schemas[name][field] = p
		}
	}
	return schemas
}
