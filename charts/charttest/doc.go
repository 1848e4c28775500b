// Package charttest tests the chart lectern. Its objects have real types and no unknown fields. Its pods meet the
// restricted Pod Security Standard. Its routes are those of shared/routes. Its network policies allow the connections that
// components need. Its dashboards and alerts name metrics that exist. The package has only tests.
package charttest
