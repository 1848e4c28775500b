// Package charttest tests the chart lectern. Golden files show the objects that the chart makes, the connections that
// network policies allow, and the Secrets that each container reads. Other tests check that the schema rejects
// mistyped values, and that dashboards and alerts name existing metrics. The package has only tests.
package charttest
