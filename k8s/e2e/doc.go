// Package e2e tests Lectern on a real cluster. It installs the chart as docs/how-to/install.md says and calls it through
// the cluster's ingress. It replaces, evicts and kills pods under load, and uninstalls the chart.
//
// scripts/e2e runs the tests, and says what they need. Without it they are skipped.
package e2e
