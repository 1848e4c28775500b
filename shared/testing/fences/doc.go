// Package fences has no code. Its test checks which packages of the whole workspace import which. No single module's
// compiler can check that.
package fences
