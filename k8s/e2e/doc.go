// Package e2e holds Lectern to what it promises on a real cluster: it installs the chart as docs/how-to/install.md says,
// calls it through the cluster's ingress, replaces, evicts and kills its pods under load, and removes it. Its tests
// are run by scripts/e2e, which says what they need; without it they skip themselves.
package e2e
