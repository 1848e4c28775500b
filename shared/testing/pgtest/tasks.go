package pgtest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// arrayInsert matches an INSERT over arrays, which is used only without Citus. On Citus, rows are inserted one by one.
var arrayInsert = regexp.MustCompile(`(?s)^INSERT .*\bSELECT\b.*\bFROM unnest\(`)

// CheckOneTask lets Citus plan each statement for the tables of db. It fails t unless the statement is one task on the
// node that has project $1. On that node it must use an index whose condition begins with the project. CheckOneTask
// ignores inserts over arrays, because insert.Put writes rows one by one to distributed tables.
//
// but lists the statements that cannot be one task, each with its kind and the reason. t also fails if a listed
// statement is one task, or does not exist.
func CheckOneTask(t *testing.T, db DB, statements map[string]string, but map[string]NotOneTask) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	// Set this on the workers too, because the tables are empty.
	for _, set := range []string{"SET citus.propagate_set_commands = 'local'", "SET citus.explain_all_tasks = on"} {
		if _, err := conn.Exec(ctx, set); err != nil {
			t.Fatal(err)
		}
	}
	checked := 0
	for name, sql := range statements {
		if arrayInsert.MatchString(strings.TrimSpace(sql)) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text, err := explain(ctx, conn, sql)
			if err != nil {
				t.Fatalf("%v\n%s", err, sql)
			}
			var plan []struct{ Plan distributed }
			if err := json.Unmarshal(text, &plan); err != nil {
				t.Fatal(err)
			}
			top := plan[0].Plan
			other, ok := but[name]
			if ok && top.Provider == "" && len(top.Plans) == 1 {
				top = top.Plans[0] // the coordinator sorts what the nodes return
			}
			job, isDistributed := top.Query.Job, top.Provider == "Citus Adaptive"
			if ok {
				if other.Why == "" || isDistributed == other.NoTable || isDistributed && job.Count < 2 {
					t.Fatalf("is not %+v:\n%s\n%s", other, sql, text)
				}
				return
			}
			if !isDistributed || job.Count != 1 || len(job.Tasks) != 1 || len(top.Plans) != 0 {
				t.Fatalf("is not one task:\n%s\n%s", sql, text)
			}
			checked++
			for _, remote := range job.Tasks[0].Plans {
				for _, p := range remote {
					p.Plan.checkShard(t, sql)
				}
			}
		})
	}
	for name := range but {
		if statements[name] == "" {
			t.Errorf("there is no statement %s", name)
		}
	}
	if checked == 0 {
		t.Error("no statement was one task")
	}
}

// NotOneTask describes a statement that [CheckOneTask] expects not to be one task.
type NotOneTask struct {
	// NoTable reports that the statement uses no table of a project. Otherwise it is about all projects, with a task
	// for each shard.
	NoTable bool
	// Why is the reason why this is correct.
	Why string
}

// explain returns the plan of a statement with literals as parameters, like the plans of its first executions.
func explain(ctx context.Context, conn *pgx.Conn, sql string) (plan []byte, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		prepared, err := tx.Prepare(ctx, "checked", sql)
		if err != nil {
			return err
		}
		// By pgx: after a DEALLOCATE in SQL, pgx would take an equal next statement for prepared.
		defer func() { _ = conn.Deallocate(ctx, "checked") }()
		if _, err := tx.Exec(ctx, `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off`); err != nil {
			return err
		}
		values := make([]string, len(prepared.ParamOIDs))
		for i, oid := range prepared.ParamOIDs {
			if values[i] = samples[oid]; values[i] == "" {
				return fmt.Errorf("no sample of type %d", oid)
			}
		}
		arguments := ""
		if len(values) > 0 {
			arguments = "(" + strings.Join(values, ", ") + ")"
		}
		return tx.QueryRow(ctx, `EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE checked`+arguments).Scan(&plan)
	})
	return plan, err
}

// samples are literals by the OID of their type. The text is also JSON, as some statements parse a text.
var samples = map[uint32]string{
	20: `1`, 21: `1`, 23: `1`, 25: `'1'`, 17: `'\x00'`, 1184: `'2022-01-01Z'`, 16: `true`,
	1009: `ARRAY['a']`, 1016: `ARRAY[1]::int8[]`, 1007: `ARRAY[1]`, 1185: `ARRAY['2022-01-01Z'::timestamptz]`, 1001: `ARRAY['\x00'::bytea]`,
}

// distributed is the outermost node of a Citus plan.
type distributed struct {
	Provider string        `json:"Custom Plan Provider"`
	Plans    []distributed `json:"Plans"`
	Query    struct {
		Job struct {
			Count int `json:"Task Count"`
			Tasks []struct {
				Plans [][]struct{ Plan node } `json:"Remote Plan"`
			}
		}
	} `json:"Distributed Query"`
}

var ofShardsProject = regexp.MustCompile(`\b(\w+\.)?project_id = '1'::text`)

// checkShard checks the plan of a worker.
func (n node) checkShard(t *testing.T, sql string) {
	t.Helper()
	if n.Relation != "" && n.Type != "ModifyTable" && !ofShardsProject.MatchString(n.IndexCond) {
		t.Errorf("%s of %s is not by project: %q\n%s", n.Type, n.Relation, n.IndexCond, sql)
	}
	for _, p := range n.Plans {
		p.checkShard(t, sql)
	}
}
