// Package fences has no code. Its test checks the imports between all packages of the workspace, which the compiler of
// a single module cannot check.
package fences
