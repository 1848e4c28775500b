// Package charttest tests the chart lectern. The schema refuses mistyped values. Golden files show all that a change of the chart
// does: objects, connections that policies allow, and Secrets that each container reads. The other tests hold rules that a user would
// miss. Its dashboards and alerts name metrics that exist. The package has only tests.
package charttest
