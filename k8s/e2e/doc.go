// Package e2e tests Lectern on a real cluster. The tests install the chart as docs/how-to/install.md describes, and
// call the services through the cluster's ingress. The tests replace, evict and kill pods under load, and uninstall the
// chart.
//
// The script scripts/e2e runs the tests, and lists the requirements. Without the script, go test skips the tests.
package e2e
