package charttest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// alertCase is an hour of samples, one a minute, and what an alert makes of them at its end.
type alertCase struct {
	alert string
	// series has the samples in promtool's notation, by series. The label namespace is added.
	series map[string]string
	// labels and summary are those of the alert that fires, without the label severity. Without a summary, none fires.
	labels  map[string]string
	summary string
}

// alertCases returns at least one case for each alert in which it fires, and one in which it does not.
func alertCases() []alertCase {
	type samples = map[string]string
	type labels = map[string]string
	requests := func(component, status, values string) samples {
		return samples{fmt.Sprintf(`http_server_request_duration_seconds_count{component=%q, listener="public", http_response_status_code=%q}`, component, status): values}
	}
	both := func(all ...samples) samples {
		sum := samples{}
		for _, some := range all {
			maps.Copy(sum, some)
		}
		return sum
	}
	// A component without pods has no series at all.
	up := func(without string) samples {
		all := samples{`up{component="sync-shop"}`: "1x60"}
		for _, name := range components() {
			all[fmt.Sprintf(`up{component=%q}`, name)] = "1x60"
		}
		delete(all, fmt.Sprintf(`up{component=%q}`, without))
		return all
	}
	slow := func(atMost1s string) samples {
		bucket := `http_server_request_duration_seconds_bucket{component="region", listener="public", http_route="/api/projects/region", le=%q}`
		return samples{fmt.Sprintf(bucket, "1"): atMost1s, fmt.Sprintf(bucket, "3"): "0+100x60", fmt.Sprintf(bucket, "+Inf"): "0+100x60"}
	}
	ingested := func(stored, rejected string) samples {
		series := `lectern_ingest_rows_total{component="entries", resource="events", outcome=%q}`
		return samples{fmt.Sprintf(series, "stored"): stored, fmt.Sprintf(series, "rejected"): rejected}
	}
	pod := labels{"namespace": "lectern", "component": "entries", "pod": "entries-1"}
	ofPod := func(metric, values string) samples {
		return samples{metric + `{component="entries", pod="entries-1"}`: values}
	}
	entries := labels{"component": "entries"}
	copied := labels{"component": "sync-shop"}
	var down []alertCase
	for _, name := range components() {
		down = append(down, alertCase{"LecternDown", both(up(name), samples{fmt.Sprintf(`up{component=%q}`, name): "0x60"}), labels{"component": name}, "No pod of " + name + " answers Prometheus."})
	}
	return append(down, []alertCase{
		{"LecternFaults", both(requests("entries", "200", "0+540x60"), requests("entries", "503", "0+60x60")), entries, "entries answers 10% of its requests with a 5xx that it caused."},
		{"LecternFaults", both(requests("entries", "200", "0+540x60"), requests("entries", "504", "0+60x60"), requests("entries", "500", "0+1x60")), nil, ""},

		{"LecternDown", up("entries"), entries, "No pod of entries answers Prometheus."},
		{"LecternDown", up("operator"), labels{"component": "operator"}, "No pod of operator answers Prometheus."},
		{"LecternDown", both(up(""), ofPod("up", "0x60")), nil, ""}, // another pod answers

		{"LecternSlow", slow("0x60"), labels{"component": "region", "http_route": "/api/projects/region"}, "region takes 2.98s for a single record (/api/projects/region, p99)."},
		{"LecternSlow", slow("0+100x60"), nil, ""},

		{"LecternCrashing", ofPod("process_start_time_seconds", "10x50 20 30 40x8"), pod, "entries-1 has started 3 times in a quarter of an hour."},
		{"LecternCrashing", ofPod("process_start_time_seconds", "10x50 20 30x9"), nil, ""},

		{"LecternOutOfFiles", both(ofPod("process_open_fds", "90x60"), ofPod("process_max_fds", "100x60")), pod, "entries-1 has 90% of its file descriptors open."},
		{"LecternOutOfFiles", both(ofPod("process_open_fds", "70x60"), ofPod("process_max_fds", "100x60")), nil, ""},

		{"LecternBusy", samples{`lectern_admission_used{component="entries", pod="entries-1", pool="requests"}`: "900x60"}, labels{"component": "entries", "pod": "entries-1"}, "entries-1 serves 900 requests at once. It refuses requests over MAX_IN_FLIGHT (1024)."},
		{"LecternBusy", samples{`lectern_admission_used{component="entries", pod="entries-1", pool="requests"}`: "700x60"}, nil, ""},

		{"LecternPoolExhausted", both(ofPod("pgxpool_acquired_connections", "8x60"), ofPod("pgxpool_max_connections", "8x60")), pod, "All connections of a pool of entries-1 have been taken for two minutes."},
		{"LecternPoolExhausted", both(ofPod("pgxpool_acquired_connections", "7x60"), ofPod("pgxpool_max_connections", "8x60")), nil, ""},

		{"LecternRedisDown", ofPod("lectern_redis_up", "0x60"), pod, "entries-1 does not reach Redis: rates are not kept."},
		{"LecternRedisDown", ofPod("lectern_redis_up", "1x60"), nil, ""},

		{"LecternKeyStoreFailing", samples{`lectern_key_lookups_total{component="entries", layer="postgres", outcome="error"}`: "0+1x60"}, entries, "entries cannot look API keys up: callers are answered 503."},
		{"LecternKeyStoreFailing", samples{`lectern_key_lookups_total{component="entries", layer="postgres", outcome="found"}`: "0+1x60"}, nil, ""},

		{"LecternIssuerUnreachable", samples{`lectern_issuer_up{component="entries", pod="entries-1", issuer="https://id.example.com"}`: "1x40 0x20"}, both(pod, labels{"issuer": "https://id.example.com"}), "entries-1 cannot read the keys of the issuer https://id.example.com: tokens with an unknown key are answered 503."},
		{"LecternIssuerUnreachable", samples{`lectern_issuer_up{component="entries", pod="entries-1", issuer="https://id.example.com"}`: "0x57 1x3"}, nil, ""},

		{"LecternStandbyLeftOut", samples{`lectern_replica_up{component="entries", pod="entries-1", node="b"}`: "0x60"}, both(pod, labels{"node": "b"}), "entries-1 does not read from b: it does not answer, or lags too far."},
		{"LecternStandbyLeftOut", samples{`lectern_replica_up{component="entries", pod="entries-1", node="b"}`: "1x60"}, nil, ""},

		{"LecternHistoryLost", ofPod("lectern_feed_lost_total", "_x58 3 3"), entries, "The database of entries was restored: changes of 3 projects are lost since yesterday."},
		{"LecternHistoryLost", ofPod("lectern_feed_lost_total", "0x60"), nil, ""},

		{"LecternRecordsRejected", ingested("0+90x60", "0+10x60"), labels{"component": "entries", "resource": "events"}, "10% of the ingested events are rejected."},
		{"LecternRecordsRejected", ingested("0+99x60", "0+1x60"), nil, ""},

		{"LecternRateLimited", samples{`lectern_rate_limited_total{component="entries"}`: "0+900x60"}, entries, "entries has refused 15 requests a second for half an hour, as over their rate."},
		{"LecternRateLimited", samples{`lectern_rate_limited_total{component="entries"}`: "0+300x60"}, nil, ""},

		{"LecternLargeListsWaiting", samples{`lectern_large_reads_waiting{component="entries"}`: "2x60"}, entries, "2 statements of large lists of entries have waited for half an hour."},
		{"LecternLargeListsWaiting", samples{`lectern_large_reads_waiting{component="entries"}`: "1x60"}, nil, ""},

		{"LecternKeysRefused", requests("entries", "401", "0+1800x60"), entries, "entries refuses 30 keys a second."},
		{"LecternKeysRefused", requests("entries", "401", "0+600x60"), nil, ""},

		{"LecternProxyPolicyStale", ofPod("lectern_proxy_policy_current", "0x60"), pod, "entries-1 uses a policy that is older than the objects in the cluster."},
		{"LecternProxyPolicyStale", ofPod("lectern_proxy_policy_current", "1x60"), nil, ""},

		{"LecternProxyObjectsFaulty", samples{`lectern_proxy_policy_objects{kind="Credential", state="faulty"}`: "2x60"}, labels{"kind": "Credential"}, "2 Credential objects are faulty: the proxy goes on without them."},
		{"LecternProxyObjectsFaulty", samples{`lectern_proxy_policy_objects{kind="Credential", state="faulty"}`: "0x60"}, nil, ""},

		{"LecternProxyTargetsFailing", both(requests("proxy", "200", "0+80x60"), requests("proxy", "502", "0+20x60")), labels{}, "20% of the proxied requests do not reach their target."},
		{"LecternProxyTargetsFailing", both(requests("proxy", "200", "0+95x60"), requests("proxy", "502", "0+5x60")), nil, ""},

		{"LecternOperatorFailing", samples{`controller_runtime_reconcile_errors_total{controller="apikey"}`: "0+1x60"}, labels{"controller": "apikey"}, "The operator has failed to reconcile apikey objects for half an hour."},
		{"LecternOperatorFailing", samples{`controller_runtime_reconcile_errors_total{controller="apikey"}`: "7x60"}, nil, ""},

		{"LecternRevocationsPostponed", samples{`lectern_apikey_revocations_postponed_total{}`: "0x30 1x30"}, labels{}, "All APIKeys are gone, and the operator did not see their deletion. The operator revokes 1 keys an hour later."},
		{"LecternRevocationsPostponed", samples{`lectern_apikey_revocations_postponed_total{}`: "1x60"}, nil, ""},

		{"LecternObjectsNotReady", samples{`lectern_operator_objects{kind="APIKey", ready="false", reason="NoProject"}`: "3x60"}, labels{"kind": "APIKey", "reason": "NoProject"}, "3 objects of APIKey have not been ready for half an hour: NoProject."},
		{"LecternObjectsNotReady", samples{`lectern_operator_objects{kind="APIKey", ready="true", reason="Ready"}`: "3x60"}, nil, ""},

		{"LecternDeletionStuck", samples{`lectern_operator_deletion_age_seconds{kind="APIKey"}`: "400x60"}, labels{"kind": "APIKey"}, "A APIKey has waited for 6m 40s to be deleted."},
		{"LecternDeletionStuck", samples{`lectern_operator_deletion_age_seconds{kind="APIKey"}`: "200x60"}, nil, ""},

		{"LecternNamespaceRefused", samples{`lectern_operator_namespace_refused{watched_namespace="team-a"}`: "1x60"}, labels{"watched_namespace": "team-a"}, "The operator may not read the Secrets of the watched namespace team-a: it is gone, or has no role."},
		{"LecternNamespaceRefused", samples{`lectern_operator_namespace_refused{watched_namespace="team-a"}`: "0x60"}, nil, ""},

		{"LecternTokensNotFetched", samples{`lectern_operator_objects{kind="Credential", ready="true", reason="FetchFailing"}`: "2x60"}, labels{}, "The operator cannot fetch the next tokens of 2 Credentials. Their tokens expire soon."},
		{"LecternTokensNotFetched", samples{`lectern_operator_objects{kind="Credential", ready="true", reason="Valid"}`: "2x60"}, nil, ""},

		{"LecternOperatorWithoutLeader", samples{`leader_election_master_status{component="operator"}`: "0x60"}, labels{}, "No operator is the leader: objects do not mint, rotate or revoke keys."},
		{"LecternOperatorWithoutLeader", nil, labels{}, "No operator is the leader: objects do not mint, rotate or revoke keys."},
		{"LecternOperatorWithoutLeader", samples{`leader_election_master_status{component="operator", pod="1"}`: "1x60", `leader_election_master_status{component="operator", pod="2"}`: "0x60"}, nil, ""},

		{"LecternSyncNotCurrent", samples{`lectern_sync_since_current_seconds{component="sync-shop"}`: "1200x60"}, copied, "The copy of sync-shop has been incomplete for 20m 0s."},
		{"LecternSyncNotCurrent", samples{`lectern_sync_since_current_seconds{component="sync-shop"}`: "10x60"}, nil, ""},

		{"LecternSyncDiffers", samples{`lectern_sync_differences{component="sync-shop"}`: "0x59 3"}, copied, "The copy of sync-shop differs from its source in 3 rows."},
		{"LecternSyncDiffers", samples{`lectern_sync_differences{component="sync-shop"}`: "3x59 0"}, nil, ""},

		{"LecternSyncNotVerified", samples{`lectern_sync_since_verified_seconds{component="sync-shop"}`: "700000x60"}, copied, "No comparison of sync-shop with its source has ended for 8d 2h 26m 40s."},
		{"LecternSyncNotVerified", samples{`lectern_sync_since_verified_seconds{component="sync-shop"}`: "600000x60", `lectern_sync_since_verified_seconds{component="sync-other"}`: "700000x60"}, nil, ""},

		{"LecternSyncFailing", samples{`lectern_sync_failing_seconds{component="sync-shop"}`: "1200x60"}, copied, "The destination of sync-shop has taken nothing for 20m 0s."},
		{"LecternSyncFailing", samples{`lectern_sync_failing_seconds{component="sync-shop"}`: "600x60"}, nil, ""},

		{"LecternSyncStopped", samples{`lectern_sync_stopped{component="sync-shop"}`: "1x60"}, copied, "The receiver of sync-shop has answered 410: it gets no more changes."},
		{"LecternSyncStopped", samples{`lectern_sync_stopped{component="sync-shop"}`: "0x60"}, nil, ""},

		{"LecternSyncDown", samples{`up{component="sync-shop"}`: "1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1"}, copied, "The pod of sync-shop has not answered most of Prometheus' requests in a quarter of an hour, or is missing."},
		{"LecternSyncDown", nil, copied, "The pod of sync-shop has not answered most of Prometheus' requests in a quarter of an hour, or is missing."},
		{"LecternSyncDown", up(""), nil, ""},
	}...)
}

// TestAlerts checks by promtool when each alert fires, with which labels and summary, and that it does not fire
// otherwise.
func TestAlerts(t *testing.T) {
	promtool := needs.Program(t, "run scripts/setup promtool", "promtool")
	r := render(t, "metrics: {rules: {enabled: true}}\n"+verified)
	rules := map[string]monitoring.Rule{}
	for _, rule := range alerts(t, r) {
		rules[rule.Alert] = rule
	}
	folder := t.TempDir()
	write := func(name string, content any) string {
		text, err := yaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	var tests []map[string]any
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, c := range alertCases() {
		rule, ok := rules[c.alert]
		if !ok {
			t.Errorf("there is no alert %s", c.alert)
			continue
		}
		series := []map[string]string{}
		for name, values := range c.series {
			series = append(series, map[string]string{"series": strings.Replace(name, "{", `{namespace="lectern", `, 1), "values": values})
		}
		want := []map[string]any{}
		if c.summary == "" {
			quiet[c.alert] = true
		} else {
			fires[c.alert] = true
			labels := maps.Clone(c.labels)
			labels["severity"] = rule.Labels["severity"]
			annotations := maps.Clone(rule.Annotations)
			annotations["summary"] = c.summary
			want = append(want, map[string]any{"exp_labels": labels, "exp_annotations": annotations})
		}
		tests = append(tests, map[string]any{
			"name": c.alert, "interval": "1m", "input_series": series,
			"alert_rule_test": []any{map[string]any{"eval_time": "60m", "alertname": c.alert, "exp_alerts": want}},
		})
	}
	for name := range rules {
		if !fires[name] || !quiet[name] {
			t.Errorf("%s has no case in which it fires, or none in which it does not", name)
		}
	}

	write("rules.yaml", one[*monitoring.PrometheusRule](t, r, "lectern").Spec)
	path := write("cases.yaml", map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "5m", "tests": tests})
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
