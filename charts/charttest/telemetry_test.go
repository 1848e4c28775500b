package charttest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	core "k8s.io/api/core/v1"

	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// query is one expression of a dashboard or an alert.
type query struct {
	where      string
	expression string
}

// verified has a copy that is compared with its source, so that all alerts are there.
const verified = "sync: {copies: {shop: {project: pr_1, verify: {schedule: weekly}}}}"

// queries returns all expressions in the chart's dashboards and alerts.
func queries(t *testing.T) []query {
	t.Helper()
	r := render(t, "metrics: {rules: {enabled: true}, dashboards: {enabled: true}}\n"+verified)
	var all []query
	for _, rule := range alerts(t, r) {
		all = append(all, query{"alert " + rule.Alert, rule.Expr.String()})
	}
	boards := 0
	for name, m := range of[*core.ConfigMap](r) {
		for file, text := range m.Data {
			if !strings.HasSuffix(file, ".json") {
				continue
			}
			boards++
			var board struct {
				Title, UID string
				Panels     []struct {
					ID      int
					Title   string
					Targets []struct{ Expr string }
				}
				Templating struct{ List []struct{ Query string } }
			}
			if err := json.Unmarshal([]byte(text), &board); err != nil {
				t.Fatalf("%s: %s: %v", name, file, err)
			}
			if board.Title == "" || board.UID == "" || len(board.Panels) == 0 {
				t.Errorf("%s has no title, uid or panels", file)
			}
			for _, p := range board.Panels {
				for _, target := range p.Targets {
					all = append(all, query{board.Title + ", " + p.Title, target.Expr})
				}
			}
			for _, v := range board.Templating.List {
				if inner, ok := strings.CutPrefix(v.Query, "label_values("); ok {
					expression, _, _ := strings.Cut(inner, ",")
					if i := strings.LastIndex(inner, ","); i > 0 {
						expression = inner[:i]
					}
					all = append(all, query{board.Title + ", variables", expression})
				}
			}
		}
	}
	if boards < 3 || len(all) < 40 {
		t.Fatalf("%d expressions in %d dashboards and the alerts; want more", len(all), boards)
	}
	return all
}

func alerts(t *testing.T, r rendered) []monitoring.Rule {
	t.Helper()
	var all []monitoring.Rule
	for _, group := range one[*monitoring.PrometheusRule](t, r, "lectern").Spec.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("%d alerts; want more", len(all))
	}
	return all
}

// The parts of an expression that the tests read: PromQL without subqueries of labels.
var (
	texts     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	selectors = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)?\{([^}]*)\}`)
	grouping  = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	durations = regexp.MustCompile(`\[[^\]]*\]|\boffset\s+\w+`)
	word      = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*(\s*\()?`)
	labelName = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)`)
)

// metricsOf returns the metrics of an expression, each with the labels that select it.
func metricsOf(expression string) map[string][]string {
	expression = texts.ReplaceAllString(expression, `""`)
	found := map[string][]string{}
	for _, m := range selectors.FindAllStringSubmatch(expression, -1) {
		if m[1] == "" {
			continue
		}
		found[m[1]] = append(found[m[1]], []string{}...)
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			found[m[1]] = append(found[m[1]], l[1])
		}
	}
	rest := selectors.ReplaceAllString(expression, " ")
	rest = grouping.ReplaceAllString(rest, " ")
	rest = durations.ReplaceAllString(rest, " ")
	for _, w := range word.FindAllString(rest, -1) {
		switch {
		case strings.HasSuffix(w, "("), slices.Contains([]string{"by", "and", "or", "unless", "group_left", "group_right", "bool", "e9"}, w):
		default:
			if _, ok := found[w]; !ok {
				found[w] = nil
			}
		}
	}
	return found
}

// targetLabels are the labels that Prometheus and the chart's monitors add to every metric.
func targetLabels() []string {
	return []string{"namespace", "pod", "container", "job", "instance", "endpoint", "service", "component"}
}

// TestLongMetricsExist checks that running programs expose the metrics in dashboards and alerts, with the labels that
// select them.
func TestLongMetricsExist(t *testing.T) {
	needs.Long(t)
	exposed := exposed(t)
	exposed["up"] = nil // Prometheus' own, of every target
	for _, q := range queries(t) {
		known := targetLabels()
		for name := range metricsOf(q.expression) {
			known = append(known, exposed[name]...)
		}
		for _, m := range grouping.FindAllStringSubmatch(texts.ReplaceAllString(q.expression, `""`), -1) {
			for _, l := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
				if !slices.Contains(known, l) {
					t.Errorf("%s: groups by %s, which none of its metrics has", q.where, l)
				}
			}
		}
		for name, labels := range metricsOf(q.expression) {
			has, ok := exposed[name]
			if !ok {
				t.Errorf("%s: nothing exposes %s", q.where, name)
				continue
			}
			for _, l := range labels {
				if !slices.Contains(has, l) && !slices.Contains(targetLabels(), l) {
					t.Errorf("%s: %s has no label %s, but %q", q.where, name, l, has)
				}
			}
		}
	}
}

// TestAlertsHaveRunbooks checks that each alert has a summary, which says what happened, and links to a section of its name.
// The section says where to look and what to do. Each section belongs to an alert.
func TestAlertsHaveRunbooks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split("\n"+string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(title, "Lectern") {
			sections[title] = body
		}
	}
	named := map[string]bool{}
	for _, rule := range alerts(t, render(t, "metrics: {rules: {enabled: true}}\n"+verified)) {
		if named[rule.Alert] {
			t.Errorf("%s is there twice", rule.Alert)
		}
		named[rule.Alert] = true
		body, ok := sections[rule.Alert]
		if !ok {
			t.Errorf("docs/reference/alerts.md has no section %s", rule.Alert)
			continue
		}
		for _, part := range []string{"**Look.**", "**Do.**"} {
			if !strings.Contains(body, part) {
				t.Errorf("docs/reference/alerts.md: %s does not say %s", rule.Alert, part)
			}
		}
		if got, want := rule.Annotations["runbook_url"], "/docs/reference/alerts.md#"+strings.ToLower(rule.Alert); !strings.HasSuffix(got, want) {
			t.Errorf("%s links to %s; want …%s", rule.Alert, got, want)
		}
		if rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s has no summary or severity", rule.Alert)
		}
		if !strings.Contains(rule.Expr.String(), `namespace="lectern"`) {
			t.Errorf("%s looks at other releases too", rule.Alert)
		}
	}
	for _, title := range slices.Sorted(maps.Keys(sections)) {
		if !named[title] {
			t.Errorf("docs/reference/alerts.md has a section %s, and there is no such alert", title)
		}
	}
}
