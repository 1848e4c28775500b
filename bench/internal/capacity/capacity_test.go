package capacity

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// made returns the points that a model of these parts would give.
func made(of Model) Points {
	p := Points{Operations: map[string]Measured{}, Sizes: map[string]float64{"entries": of.Entry, "events": of.Event}}
	for name, bytes := range map[string]float64{
		"get_one": 600, "list_10": 6000, "list_100": 60_000, "list_400": 240_000, "list_2000": 1_200_000,
		"entry_events": 2300, "page_views_10": 6000, "page_views_100": 60_000, "export": 60_000_000,
	} {
		p.Operations[name] = Measured{Bytes: bytes}
	}
	for name, shape := range Shapes(p) {
		p.Operations[name] = of.Cost(shape)
	}
	p.Operations["ingest"] = of.Ingest
	return p
}

var truth = Model{
	Request: 100, ServiceRow: 2, KB: 0.5, Point: 50, Statement: 90, Row: 2, Lookup: 10, IndexRow: indexRow, RedisRequest: 5,
	Ingest: Measured{Service: 6, Postgres: 12, Bytes: 600}, Entry: 700, Event: 400,
}

// The model finds the parts that gave the points, and predicts the other points.
func TestModelFindsItsParts(t *testing.T) {
	p := made(truth)
	got, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(truth, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Error(diff)
	}
	all := got.Compare(p)
	if len(all) != 18 {
		t.Errorf("%d predictions", len(all))
	}
	fitted := 0
	for _, c := range all {
		if math.Abs(c.Error()) > 1e-9 {
			t.Errorf("%s of %s is off by %v", c.Program, c.Operation, c.Error())
		}
		if c.Fitted {
			fitted++
		}
	}
	if fitted != 7 {
		t.Errorf("%d are marked as those that the model is made from", fitted)
	}
}

func TestErrorIsAPartOfWhatWasMeasured(t *testing.T) {
	if e := (Prediction{Predicted: 90, Measured: 120}).Error(); e != -0.25 {
		t.Errorf("error %v", e)
	}
}

func TestListShape(t *testing.T) {
	for _, tt := range []struct {
		name           string
		records, bytes float64
		want           Shape
	}{
		{"one chunk", 10, 6000, Shape{Statements: 1, Rows: 11, Bytes: 6000}},
		{"three chunks", 2000, 1.2e6, Shape{Statements: 4, Rows: 2000, Index: 1500, Bytes: 1.2e6}},
		{"large records", 1000, 100 << 20, Shape{Statements: 2 + 50, Rows: 1000, Index: 500, Bytes: 100 << 20}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ListShape(tt.records, tt.bytes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadTakesCostsAlone(t *testing.T) {
	p, err := Read([]byte(`[{"name":"list_10","value":1},{"name":"cost_list_10_service","value":2},{"name":"cost_list_10_postgres","value":3},
		{"name":"cost_list_10_redis","value":4},{"name":"cost_list_10_bytes","value":5},{"name":"cost_list_10_rate","value":6},{"name":"size_events","value":7}]`))
	want := Points{Operations: map[string]Measured{"list_10": {2, 3, 4, 5}}, Sizes: map[string]float64{"events": 7}}
	if err != nil || cmp.Diff(want, p) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(want, p))
	}
	for _, bad := range []string{`[]`, `{`, `[{"name":"export","value":1}]`} {
		if _, err := Read([]byte(bad)); err == nil || !strings.HasPrefix(err.Error(), "capacity: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := New(p); err == nil {
		t.Error("a model was made of one operation")
	}
}

func TestNeed(t *testing.T) {
	p := made(truth)
	on := Machine{Cores: 16, MemoryGiB: 128, DiskGiB: 4000, Speed: 1, Use: 0.5, Fill: 0.5}
	for _, tt := range []struct {
		name    string
		in      Demand
		workers float64
		binding string
		shards  float64
	}{
		{"nothing", Demand{}, 1, "processors", 32},
		{"much on disk", Demand{Events: 1e11}, math.Ceil(1e11 * 400 / gib / 2000), "disk", 1024},
		{"all in memory", Demand{Events: 1e10, Hot: 1}, math.Ceil(1e10 * 400 / gib / 64), "memory", 256},
		{"many requests", Demand{Lists: 1e6}, math.Ceil(1e6 * (90 + 2*11) / 1e6 / 0.5 / 16), "processors", 64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.binding == "processors" && tt.in.Lists == 0 {
				tt.in.Gets = 1
			}
			got := truth.Need(tt.in, on, p)
			if got.Workers() != tt.workers || got.Binding != tt.binding || got.Shards != tt.shards {
				t.Errorf("%v workers by %s, %v shards; want %v by %s, %v", got.Workers(), got.Binding, got.Shards, tt.workers, tt.binding, tt.shards)
			}
			if got.ServiceReplicas < 2 {
				t.Errorf("%v replicas", got.ServiceReplicas)
			}
		})
	}
	slow := on
	slow.Speed = 0.5
	d := Demand{Gets: 1000, Lists: 1000, ExportRows: 10_000, IngestEntries: 100, IngestEvents: 100}
	fast, half := truth.Need(d, on, p), truth.Need(d, slow, p)
	if math.Abs(half.ServiceCores-2*fast.ServiceCores) > 1e-9 || math.Abs(half.PostgresCores-2*fast.PostgresCores) > 1e-9 {
		t.Errorf("at half the speed %v and %v cores, else %v and %v", half.ServiceCores, half.PostgresCores, fast.ServiceCores, fast.PostgresCores)
	}
}
