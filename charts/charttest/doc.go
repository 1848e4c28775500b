// Package charttest holds the chart lectern to what it promises: its objects are of real types without a field
// too many, its pods are as restricted as Kubernetes asks for, its routes are those of shared/routes, its
// policies let through who talks to whom, its dashboards and alerts name metrics that exist. It has no code
// beside tests.
package charttest
